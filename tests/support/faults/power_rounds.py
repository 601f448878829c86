"""Processes that share a ledger while some of them are killed; then the power goes.

    python -m tests.support.faults.power_rounds FOLDER SEED N_ROUNDS N_STATES COMPANY SCHEDULE ...

Prints the losses of each round as a line of JSON, and the story of what should not have been lost
to standard error. A round is of some generations of processes: in
each a writer, and in COMPANY (0 or 1) another, a reader of ours and one of another program. All but
the last generation meet the schedule's fault. What they do is recorded, and the power taken away at
N_STATES moments.
"""

import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec

from ledger.errors import NoLedger
from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.faults.appender import appending
from tests.support.faults.power_loss import Losses, all_written, losses_in
from tests.support.faults.recorder import (
    By,
    Fault,
    FaultKind,
    Opened,
    Promise,
    Recorder,
    records_in,
)
from tests.support.faults.vfs import Sync, SyncFolder

First = Literal["a writer", "a reader", "another program"]

N_GENERATIONS: Final = 3
_N_BATCHES: Final = 8  # of a writer
_N_LOOKS: Final = 12  # of a reader
_LAST_OPERATION: Final = 150  # that a fault comes with; a writer has some more
_LAST_FLUSH: Final = 20
_FORK: Final = get_context("fork")
_LEDGER: Final = "run.ledger"
_RECORDED: Final = {_LEDGER, f"{_LEDGER}-wal", f"{_LEDGER}-journal"}
_NEWEST: Final = "SELECT position, chain FROM event ORDER BY position DESC LIMIT 1"


class Schedule(NamedTuple):
    """What befalls the first writer of a generation, and what is left out to see it noticed."""

    fault: FaultKind | None = None
    first: First = "a writer"  # to open the ledger after the fault
    synchronous: Literal["FULL", "NORMAL", "OFF"] = "FULL"
    has_honest_disk: bool = True

    @property
    def is_safe(self) -> bool:
        """Whether nothing is left out."""
        return self.synchronous == "FULL" and self.has_honest_disk


SCHEDULES: Final[Mapping[str, Schedule]] = {
    "undisturbed": Schedule(),
    "kill": Schedule("kill"),
    "kill-read": Schedule("kill at a flush", first="a reader"),
    "kill-foreign": Schedule("kill at a flush", first="another program"),
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
    found = losses_in(records, _LEDGER, n_states, it.rng, tells_story=it.schedule.is_safe)
    return found + Losses(n_kills=n_kills)


def _generation(it: Round, number: int) -> int:
    """Let a generation live; return how many of its processes were killed."""
    fault = _fault(it) if number < N_GENERATIONS - 1 else None
    pages = it.rng.choice((3, 10, 40))  # until a checkpoint
    is_over = _FORK.Event()
    first = _opening_first(it, is_over) if number > 0 else []
    processes = [_started(_write, it, f"{number}/0", pages, fault)]
    if it.has_company and number > 0:
        processes.append(_started(_write, it, f"{number}/1", pages, None))
        processes += [_started(act, it, it.rng.random()) for act in (_read, _read_as_foreigner)]
    codes = [_exit_code(each) for each in processes]
    is_over.set()
    unexpected = {*codes, *map(_exit_code, first)} - {0, -signal.SIGKILL}
    if unexpected:
        raise ChildProcessError(f"processes exited with {unexpected}")
    return codes.count(-signal.SIGKILL)


def _opening_first(it: Round, is_over: Event) -> list[ForkProcess]:
    """Let whom the schedule names open the ledger before the next writer."""
    match it.schedule.first:
        case "a writer":
            return []
        case "a reader":
            reader = _started(_read, it, it.rng.random())
            reader.join()
            return [reader]
        case "another program":
            reads = _FORK.Event()
            program = _started(_read_until, it, reads, is_over)
            reads.wait()
            return [program]


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
            recorder.note(Opened(for_writing=True))
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
    """Be a reader of ours: look, stay for a while, come again."""
    recorder, rng = Recorder(it.log, it.ledger.parent), Random(seed)  # noqa: S311
    for _ in range(_N_LOOKS):
        with suppress(NoLedger), Ledger.read_only(it.ledger) as ledger:
            recorder.note(Opened(for_writing=False))
            for _ in range(rng.randint(1, 4)):
                _tell_head(recorder, ledger, "head")


def _read_as_foreigner(it: Round, seed: float) -> None:
    """Be another program: it reads, stays in a transaction, moves the log into the file."""
    recorder, rng = Recorder(it.log, it.ledger.parent), Random(seed)  # noqa: S311
    with closing(sqlite3.connect(it.ledger, timeout=0.1, isolation_level=None)) as connection:
        for _ in range(_N_LOOKS):
            if connection.in_transaction:
                connection.execute("COMMIT")
            if rng.random() < 0.2:
                mode = rng.choice(("PASSIVE", "RESTART", "TRUNCATE"))
                connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            if rng.random() < 0.5:
                connection.execute("BEGIN")
            for position, chain in _newest(connection):
                recorder.note(Promise("foreign", position, chain))


def _newest(connection: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Return the last event's place, if there is one, and there is a table by now."""
    try:
        return connection.execute(_NEWEST).fetchall()
    except sqlite3.OperationalError:
        return []


def _read_until(it: Round, reads: Event, is_over: Event) -> None:
    """Keep one transaction open. What it sees is told to nobody: see `docs/ledger.md`."""
    Recorder(it.log, it.ledger.parent)
    with closing(sqlite3.connect(it.ledger, timeout=0.1, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        _newest(connection)
        reads.set()
        is_over.wait()


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
