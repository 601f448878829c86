"""Processes that share a ledger while some of them are killed; then the power goes.

    python -m tests.support.faults.power_rounds FOLDER SEED N_ROUNDS N_STATES COMPANY SCHEDULE ...

Prints the losses of each round as a line of JSON. A round is of some generations of processes: in
each a writer, and in COMPANY (0 or 1) another and a reader. All but the last generation meet the
schedule's fault. What they do is recorded, and the power taken away at N_STATES moments.
"""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec

from ledger.errors import NoLedger
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.faults.appender import appending
from tests.support.faults.power_loss import Losses, all_written, losses_in
from tests.support.faults.recorder import By, Fault, FaultKind, Promise, Recorder, records_in
from tests.support.faults.vfs import Sync, SyncFolder

N_GENERATIONS: Final = 3
_N_BATCHES: Final = 8  # of a writer
_N_LOOKS: Final = 12  # of a reader
_LAST_OPERATION: Final = 150  # that a fault comes with; a writer has some more
_LAST_FLUSH: Final = 20
_FORK: Final = get_context("fork")
_LEDGER: Final = "run.ledger"
_RECORDED: Final = {_LEDGER, f"{_LEDGER}-wal", f"{_LEDGER}-journal"}


class Schedule(NamedTuple):
    """What befalls the first writer of a generation, and what is left out to see it noticed."""

    fault: FaultKind | None = None
    is_read_first: bool = False  # after the fault, before the next writer
    synchronous: Literal["FULL", "NORMAL", "OFF"] = "FULL"
    has_honest_disk: bool = True


SCHEDULES: Final[Mapping[str, Schedule]] = {
    "undisturbed": Schedule(),
    "kill": Schedule("kill"),
    "kill-read": Schedule("kill at a flush", is_read_first=True),
    # What must be seen to fail:
    "no-flush-of-commits": Schedule(synchronous="NORMAL"),
    "no-flush": Schedule(synchronous="OFF"),
    "lying-disk": Schedule(has_honest_disk=False),
}


class Round(NamedTuple):
    """Where a round is played, and how."""

    folder: Path
    schedule: Schedule
    rng: Random
    has_company: bool

    @property
    def log(self) -> Path:
        """The file of all that is recorded."""
        return self.folder / "records"

    @property
    def ledger(self) -> Path:
        """The ledger, in a folder of its own."""
        return self.folder / "place" / _LEDGER


def play(it: Round, n_states: int) -> Losses:
    """Play a round, and take the power away at so many moments."""
    it.ledger.parent.mkdir(parents=True)
    n_kills = sum(_generation(it, number) for number in range(N_GENERATIONS))
    records = records_in(it.log)
    files = {each.name: each.read_bytes() for each in it.ledger.parent.iterdir()}
    if all_written(records) != {name: files[name] for name in files if name in _RECORDED}:
        raise AssertionError("the log does not tell what is in the files")
    if not it.schedule.has_honest_disk:
        records = [each for each in records if not isinstance(each, Sync | SyncFolder)]
    return losses_in(records, _LEDGER, n_states, it.rng) + Losses(n_kills=n_kills)


def _generation(it: Round, number: int) -> int:
    """Let a generation live; return how many of its processes were killed."""
    fault = _fault(it) if number < N_GENERATIONS - 1 else None
    pages = it.rng.choice((3, 10, 40))  # until a checkpoint
    processes = list[ForkProcess]()
    if it.schedule.is_read_first and number > 0:
        processes.append(_started(_read, it, it.rng.random()))
        processes[0].join()
    processes.append(_started(_write, it, f"{number}/0", pages, fault))
    if it.has_company and number > 0:
        processes.append(_started(_write, it, f"{number}/1", pages, None))
        processes.append(_started(_read, it, it.rng.random()))
    codes = [_exit_code(each) for each in processes]
    if unexpected := {*codes} - {0, -signal.SIGKILL}:
        raise ChildProcessError(f"processes exited with {unexpected}")
    return codes.count(-signal.SIGKILL)


def _exit_code(process: ForkProcess) -> int | None:
    process.join()
    return process.exitcode


def _fault(it: Round) -> Fault | None:
    """Draw when the fault comes."""
    kind = it.schedule.fault
    last = _LAST_OPERATION if kind == "kill" else _LAST_FLUSH
    return None if kind is None else Fault(kind, it.rng.randint(1, last))


def _started(act: Callable[..., None], it: Round, *arguments: object) -> ForkProcess:
    process = _FORK.Process(target=act, args=(it, *arguments), daemon=True)
    process.start()
    return process


def _write(it: Round, name: str, pages: int, fault: Fault | None) -> None:
    """Append, and tell of it."""
    recorder = Recorder(it.log, it.ledger.parent, fault)
    for part in range(2):
        names = [f"{name}/{part}/{number}" for number in range(_N_BATCHES // 2)]
        with Ledger.open(it.ledger) as ledger:
            ledger.connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            ledger.connection.execute(f"PRAGMA synchronous = {it.schedule.synchronous}")
            for told in appending(ledger, STREAM, names):
                if told.places:
                    position, _leaf, chain = told.places[-1]
                    recorder.note(Promise("acknowledged", position, chain))
                    _tell_head(recorder, ledger, "acknowledged")


def _tell_head(recorder: Recorder, ledger: Ledger, by: By) -> None:
    head = ledger.head
    if head.position:
        recorder.note(Promise(by, head.position, bytes.fromhex(head.chain)))


def _read(it: Round, seed: float) -> None:
    """Be a reader: look, stay for a while, come again."""
    recorder, rng = Recorder(it.log, it.ledger.parent), Random(seed)  # noqa: S311
    for _ in range(_N_LOOKS):
        with suppress(NoLedger), Ledger.read_only(it.ledger) as ledger:
            for _ in range(rng.randint(1, 4)):
                _tell_head(recorder, ledger, "head")


def main(folder: Path, numbers: Sequence[int], names: Sequence[str]) -> None:
    """Play all rounds."""
    seed, n_rounds, n_states, company = numbers
    for name in names:
        for number in range(n_rounds):
            rng = Random(f"{seed} {name} {number}")  # noqa: S311  # moments, not secrets
            place = folder / name / str(number)
            losses = play(Round(place, SCHEDULES[name], rng, bool(company)), n_states)
            sys.stdout.write(f"{msgspec.json.encode((name, losses)).decode()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [*map(int, sys.argv[2:6])], sys.argv[6:])
