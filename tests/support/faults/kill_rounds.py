"""Rounds of writers that are killed with SIGKILL at random steps, on an ever older ledger.

    python -m tests.support.faults.kill_rounds FOLDER SEED N_ALONE N_TOGETHER N_BEGINNINGS

Prints the figures of every round as a line of JSON. One writer is killed in N_ALONE rounds, four
in N_TOGETHER; in N_BEGINNINGS the ledger is a new one, to be made. The first writer of a round is
killed before or after a statement of SQLite that the seed chose, the others wherever they are
then. What a writer imports is imported once: it is a fork of this process.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec

from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.faults.appender import Told, appending
from tests.support.faults.death import Death, die
from tests.support.faults.kill_witness import Figures, Witness, told_by
from tests.support.patience import PATIENCE_S

N_TOGETHER: Final = 4  # writers
_FURTHEST: Final = 400  # steps from the first acknowledgement to the kill: some 20 batches
_FURTHEST_EARLY: Final = 60  # from the fork: twice what opening takes
_N_WAL_PAGES: Final = (1, 4, 20, 100, 1_000)  # SQLite moves a WAL so long into the file
_UNTIL_REOPENED: Final = 10  # batches after which a writer closes the ledger and goes on

_FORK: Final = get_context("fork")
_DECODER: Final = msgspec.json.Decoder(Told)


class Plan(NamedTuple):
    """What is left to chance in a round."""

    name: str
    n_writers: int
    is_early: bool  # killed while they open the ledger, perhaps
    death: Death  # of the first writer
    n_wal_pages: int
    is_shared: bool  # one stream for all writers
    openings: tuple[bool, ...]  # who looks afterwards, in turn: is it for writing?


class Writer(NamedTuple):
    """A process that appends, what it tells, and what it told."""

    process: ForkProcess
    pipe: Connection
    steps: list[Told]


def plan_of(rng: Random, name: str, n_writers: int, *, is_early: bool) -> Plan:
    """Decide on a round."""
    return Plan(
        name,
        n_writers,
        is_early,
        death=Death(rng.randint(1, _FURTHEST_EARLY if is_early else _FURTHEST)),
        n_wal_pages=rng.choice(_N_WAL_PAGES),
        is_shared=rng.random() < 0.5,
        openings=rng.choice([(False,), (True,), (False, True)]),  # a reader leaves the WAL as it is
    )


def rounds_on_one_ledger(
    path: Path, rng: Random, n_alone: int, n_together: int
) -> Iterator[Figures]:
    """Play rounds on a ledger that grows older."""
    witness = Witness()
    numbers_of_writers = [1] * n_alone + [N_TOGETHER] * n_together
    rng.shuffle(numbers_of_writers)
    for number, n_writers in enumerate(numbers_of_writers):
        is_early = number > 0 and rng.random() < 0.1
        yield play(path, plan_of(rng, f"round{number}", n_writers, is_early=is_early), witness)


def rounds_on_new_ledgers(folder: Path, rng: Random, n_rounds: int) -> Iterator[Figures]:
    """Play rounds in which the ledger is killed while it is made; a writer must do with that."""
    for number in range(n_rounds):
        plan = plan_of(rng, "beginning", rng.choice([1, N_TOGETHER]), is_early=True)
        path = folder / f"beginning{number}.ledger"
        yield play(path, plan._replace(openings=(True, False)), Witness())


def play(path: Path, plan: Plan, witness: Witness) -> Figures:
    """Let writers write, kill them, and look at what they left."""
    heard = told_by(run_until_killed(path, plan))
    witness.hear(heard)
    figures = Figures(
        n_rounds=1,
        n_writers=plan.n_writers,
        n_killed_inside=len(heard.unanswered),
        n_acknowledged=len(heard.acknowledged),
        n_hot_wals=int(is_hot(path)),
    )
    for is_for_writing in plan.openings:
        figures += look(path, witness, is_for_writing=is_for_writing)
    return figures


def look(path: Path, witness: Witness, *, is_for_writing: bool) -> Figures:
    """Open the ledger as the next run or the next reader does, and see what is there."""
    began = time.perf_counter()
    with Ledger.open(path) if is_for_writing else Ledger.read_only(path) as ledger:
        figures = Figures(n_faults=int(ledger.head.position < witness.position))
        reopened_s = time.perf_counter() - began
        figures += witness.look(ledger) + Figures(slowest_reopen_s=reopened_s)
        return figures + witness.ask_again(ledger) if is_for_writing else figures


def is_hot(path: Path) -> bool:
    """Say whether a WAL was left that holds something."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def run_until_killed(path: Path, plan: Plan) -> list[list[Told]]:
    """Let a round's first writer die, kill the others, and return what each of them told."""
    writers = [start_writer(path, plan, number) for number in range(plan.n_writers)]
    with suppress(EOFError):  # the first has died
        while True:
            listen(writers)
    while not (plan.is_early or all(any(step.places for step in each.steps) for each in writers)):
        listen(writers[1:])
    for writer in writers[1:]:
        writer.process.kill()
    return [last_words(writer) for writer in writers]


def start_writer(path: Path, plan: Plan, number: int) -> Writer:
    """Fork a writer."""
    mine, its = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=write, args=(its, path, plan, number), daemon=True)
    process.start()
    its.close()
    return Writer(process, mine, [])


def write(pipe: Connection, path: Path, plan: Plan, number: int) -> None:
    """Be a writer, until killed; or until nobody is there to do so."""
    parent = os.getppid()
    stream = StreamId("main" if plan.is_shared else f"writer {number}")
    names = (f"{plan.name}/{number}/{batch}" for batch in count())
    death = None if number else plan.death
    if death is not None and plan.is_early:
        die(death)
    while os.getppid() == parent:
        with Ledger.open(path) as ledger:
            ledger.connection.execute(f"PRAGMA wal_autocheckpoint = {plan.n_wal_pages}")
            for told in appending(ledger, stream, islice(names, _UNTIL_REOPENED)):
                pipe.send_bytes(msgspec.json.encode(told))  # at once: shorter than PIPE_BUF
                if death is not None and told.places and not plan.is_early:
                    die(death)
                    death = None


def listen(writers: list[Writer]) -> None:
    """Hear what is told next, one step of each at most.

    Raises:
        EOFError: One of them has ended.
    """
    heard = wait([writer.pipe for writer in writers], PATIENCE_S)
    if not heard:
        raise TimeoutError(f"no acknowledgement in {PATIENCE_S} s")
    for writer in writers:
        if writer.pipe in heard:
            writer.steps.append(_DECODER.decode(writer.pipe.recv_bytes()))


def last_words(writer: Writer) -> list[Told]:
    """Hear a killed writer to its end."""
    writer.process.join()
    if writer.process.exitcode != -signal.SIGKILL:
        raise ChildProcessError(f"a writer exited with {writer.process.exitcode}, unkilled")
    while writer.pipe.poll():
        try:
            writer.steps.append(_DECODER.decode(writer.pipe.recv_bytes()))
        except EOFError:
            break
    writer.pipe.close()
    writer.process.close()
    return writer.steps


def main(folder: Path, seed: int, n_alone: int, n_together: int, n_beginnings: int) -> None:
    """Play all rounds."""
    rng = Random(seed)  # noqa: S311  # moments, not secrets
    rounds = [
        rounds_on_new_ledgers(folder, rng, n_beginnings),
        rounds_on_one_ledger(folder / "killed.ledger", rng, n_alone, n_together),
    ]
    for figures in (each for part in rounds for each in part):
        sys.stdout.write(f"{msgspec.json.encode(figures).decode()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
