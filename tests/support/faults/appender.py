"""Processes that append to a ledger, to be killed or to race, and tell every step.

They are forks of this process, so that what a writer imports is imported once.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ledger.errors import StaleVersion
from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger, utc_now
from tests.support import spared_pandas  # noqa: F401  # once for all forks that make a ledger
from tests.support.builders.events import key, verdict

LARGEST: Final = 20  # events in a batch
_MEAN_CHARACTERS: Final = 1_000  # of a reply; some are longer than a page of the file


class Place(NamedTuple):
    """Where an event is said to be recorded, with the two hashes that name it there."""

    position: int
    leaf: bytes
    chain: bytes


class Told(msgspec.Struct, frozen=True):
    """One step: a batch is about to be appended, or `append` returned and it has its places."""

    batch: str
    stream: StreamId
    places: tuple[Place, ...] = ()


_FORK: Final = get_context("fork")
_DECODER: Final = msgspec.json.Decoder(Told)
READY: Final = Told("ready", StreamId(""))
HOLDING: Final = Told("holding", StreamId(""))


def batch_of(name: str, largest: int = LARGEST) -> tuple[VerdictReceived, ...]:
    """Make a batch's events from its name alone: whoever knows that can ask for it again."""
    rng = Random(name)  # noqa: S311  # sizes, not secrets
    return tuple(
        replace(verdict(key(f"{name} {number}")), reply=f"{name} {'x' * _n_characters(rng)}")
        for number in range(rng.randint(1, largest))
    )


def name_in(event: VerdictReceived) -> str:
    """Return the name of the batch that an event is of."""
    return event.reply.partition(" ")[0]


def places_of(receipts: Iterable[Receipt]) -> tuple[Place, ...]:
    """Return where receipts say that events are."""
    return tuple(
        Place(recorded.position, leaf, recorded.link) for recorded, leaf, _is_new in receipts
    )


def appending(
    ledger: Ledger, stream: StreamId, names: Iterable[str], *, largest: int = LARGEST
) -> Iterator[Told]:
    """Append batches of these names, telling before and after each."""
    for name in names:
        events = batch_of(name, largest)
        yield Told(name, stream)
        yield Told(name, stream, places_of(ledger.append(stream, events)))


def racing(ledger: Ledger, stream: StreamId, names: Iterable[str]) -> Iterator[Told]:
    """Append an event of each name; one told of without a place was refused, and tries again.

    The first is decided on before the race begins, so only one of the writers can be right.
    """
    version = 0
    for name in names:
        while not (places := _decided_on(version, ledger, stream, name)):
            yield Told(name, stream)
            version = _version_of(ledger, stream)
        yield Told(name, stream, places)
        version = _version_of(ledger, stream)


def _decided_on(version: int, ledger: Ledger, stream: StreamId, name: str) -> tuple[Place, ...]:
    """Append what says the version that it was decided on; nowhere, if that was not the newest."""
    event = replace(verdict(key(name)), reply=f"{name} {version}")
    try:
        return places_of(ledger.append(stream, [event], expected_version=version))
    except StaleVersion:
        return ()


def _version_of(ledger: Ledger, stream: StreamId) -> int:
    [(version,)] = ledger.select("SELECT count(*) FROM event WHERE stream = ?", stream)
    return int(version)


def _n_characters(rng: Random) -> int:
    return int(rng.expovariate(1 / _MEAN_CHARACTERS)) * (20 if rng.random() < 0.01 else 1)


class Writer(NamedTuple):
    """A process that appends, and the pipe by which it tells its steps and hears when to begin."""

    process: ForkProcess
    pipe: Connection

    def next_step(self) -> Told:
        """Wait for what it tells next.

        Raises:
            EOFError: It has ended.
        """
        return _DECODER.decode(self.pipe.recv_bytes())

    def go(self) -> None:
        """Let it begin."""
        self.pipe.send(None)

    def to_the_end(self) -> Iterator[Told]:
        """Yield all that it tells; it must end well."""
        try:
            while True:
                yield self.next_step()
        except EOFError:
            self.process.join()
            assert self.process.exitcode == 0


Kind = Literal["batches", "races", "stalls"]


@contextmanager
def writing(
    path: Path, stream: StreamId, name: str, kind: Kind = "batches", n_batches: int | None = None
) -> Iterator[Writer]:
    """Start a process that is ready to append until the block ends, unless it does so before.

    Args:
        path: The ledger.
        stream: What it appends to.
        name: With which the names of its batches begin.
        kind: It appends batches; or single events decided on the version that was read, again until
            that holds; or it takes the lock, says so, and holds it until it hears more.
        n_batches: How many, of one event each; None: large ones without an end.
    """
    mine, its = _FORK.Pipe()
    process = _FORK.Process(target=_write, args=(its, path, stream, name, kind, n_batches))
    process.start()
    its.close()
    writer = Writer(process, mine)
    try:
        assert writer.next_step() == READY
        yield writer
    finally:
        process.kill()
        process.join()
        mine.close()


def _write(
    pipe: Connection, path: Path, stream: StreamId, name: str, kind: Kind, n_batches: int | None
) -> None:
    """Be one of the processes."""
    names = (f"{name}/{number}" for number in (count() if n_batches is None else range(n_batches)))
    act = racing if kind == "races" else partial(appending, largest=1 if n_batches else LARGEST)
    now = partial(_hold_on, pipe) if kind == "stalls" else utc_now
    with Ledger.open(path, now=now) as ledger:
        _say(pipe, READY)
        pipe.recv()
        for told in act(ledger, stream, names):
            _say(pipe, told)


def _say(pipe: Connection, told: Told) -> None:
    pipe.send_bytes(msgspec.json.encode(told))


def _hold_on(pipe: Connection) -> datetime:
    """Be the clock, which is read in the middle of an append."""
    _say(pipe, HOLDING)
    pipe.recv()
    return utc_now()
