"""Processes to kill or to race: each appends, and tells every step on a line of its own.

    python -m tests.support.faults.appender KIND LEDGER WRITER STREAM N_BATCHES

It says that it is ready and begins when a line, or the end, of its input comes. KIND is

- `batches`: append so many batches, each told of before and after;
- `singles`: the same with one event in each;
- `races`: append single events decided on the version that was read, again until it holds;
- `stalls`: take the lock, say so, and hold it until the input ends.
"""

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ledger.errors import StaleVersion
from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger, utc_now
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


def _say(told: Told) -> None:
    sys.stdout.write(f"{msgspec.json.encode(told).decode()}\n")
    sys.stdout.flush()


def _hold_on() -> datetime:
    """Be the clock, which is read in the middle of an append."""
    _say(HOLDING)
    sys.stdin.read()
    return utc_now()


def main(kind: str, path: Path, writer: str, stream: StreamId, n_batches: int) -> None:
    """Be one of the processes."""
    names = [f"{writer}/{number}" for number in range(n_batches)]
    with Ledger.open(path, now=_hold_on if kind == "stalls" else utc_now) as ledger:
        _say(READY)
        sys.stdin.readline()
        steps = {
            "batches": appending(ledger, stream, names),
            "singles": appending(ledger, stream, names, largest=1),
            "races": racing(ledger, stream, names),
            "stalls": appending(ledger, stream, names),
        }
        for told in steps[kind]:
            _say(told)


if __name__ == "__main__":
    given_kind, given_path, given_writer, given_stream, given_n = sys.argv[1:]
    main(given_kind, Path(given_path), given_writer, StreamId(given_stream), int(given_n))
