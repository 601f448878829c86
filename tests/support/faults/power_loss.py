"""What a power loss leaves of files, and whether it is all that somebody was told of."""

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, Literal

import msgspec

from ledger.errors import LedgerError, NoLedger
from ledger.store import Ledger
from tests.support.faults.kill_witness import Witness
from tests.support.faults.recorder import Promise, Record
from tests.support.faults.vfs import Create, Delete, Sync, SyncFolder, Truncate, Write

SECTOR: Final = 512  # bytes that a disk writes whole or not at all
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # states are made up, and need no disk
_IN_MEMORY: Final = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None

Fate = Literal["kept", "dropped", "torn"]
_FATES: Final[tuple[Fate, ...]] = ("kept", "dropped", "torn")
Change = tuple[int, Write | Truncate]  # of a file, known by a number: names come and go
Naming = tuple[int, str, int | None]  # when a name was given to a file, or taken away


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """In how many states left by a power loss something was missing."""

    n_states: int = 0
    n_kills: int = 0
    n_moved: int = 0  # pages that checkpoints moved into the ledger after the first promise
    n_promises: int = 0  # that were to be kept, in all states together
    n_acknowledged_lost: int = 0
    n_heads_lost: int = 0  # told by readers
    n_corrupt: int = 0  # damaged, or half an append

    def __add__(self, other: "Losses") -> "Losses":
        """Count both together."""
        mine, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return Losses(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def n_broken(self) -> int:
        """All that must be zero."""
        return self.n_acknowledged_lost + self.n_heads_lost + self.n_corrupt


def losses_in(records: Sequence[Record], name: str, n_states: int, rng: Random) -> Losses:
    """Take the power away at random moments, and look at what is left of a ledger."""
    first = next((at for at, each in enumerate(records) if isinstance(each, Promise)), len(records))
    n_moved = sum(isinstance(each, Write) and each.name == name for each in records[first:])
    losses = Losses(n_moved=n_moved)
    moments = range(1, len(records) + 1)
    for at, files in _different_states(records, moments, n_states, rng):
        promises = [each for each in records[:at] if isinstance(each, Promise)]
        losses += found_in(files, name, promises)
    return losses


def _different_states(
    records: Sequence[Record], moments: Sequence[int], n_states: int, rng: Random
) -> Iterator[tuple[int, Mapping[str, bytes]]]:
    """Yield when the power went, and the files that were left."""
    seen: set[tuple[int, int]] = set()
    while len(seen) < n_states:
        at = rng.choice(moments)
        files = after_power_loss(records[:at], rng)
        state = (at, hash(frozenset(files.items())))
        if state not in seen:
            seen.add(state)
            yield at, files


def found_in(files: Mapping[str, bytes], name: str, promises: Sequence[Promise]) -> Losses:
    """Open what is left as the next run would, and hold it against what was told."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
        for each, content in files.items():
            Path(folder, each).write_bytes(content)
        try:
            with Ledger.open(Path(folder, name)) as ledger:
                there = set(ledger.select("SELECT position, chain FROM event"))
                is_sound = Witness().look(ledger).n_broken_promises == 0
        except NoLedger:  # it was only begun
            there, is_sound = set(), True
        except LedgerError:
            there, is_sound = set(), False
    lost = {each.by for each in promises if (each.position, each.chain) not in there}
    return Losses(
        n_states=1,
        n_promises=len(promises),
        n_acknowledged_lost="acknowledged" in lost,
        n_heads_lost="head" in lost,
        n_corrupt=not is_sound,
    )


def all_written(records: Sequence[Record]) -> dict[str, bytes]:
    """Return the files, by name, as they are while the power is there."""
    names = {each.name for each in records if isinstance(each, Create | Write)}
    return after_power_loss([*records, *map(Sync, names), SyncFolder()], Random(0))  # noqa: S311


def after_power_loss(records: Sequence[Record], rng: Random) -> dict[str, bytes]:
    """Return the files, by name, that a power loss may leave when so much was done.

    What was flushed is there. Of the rest each truncation is kept or dropped, each write kept,
    dropped or torn between sectors; names change in order, up to some change.
    """
    changes, namings, durable, n_durable_namings = _history(records)
    odds = [rng.gammavariate(0.5, 1) for _ in _FATES]  # some lose little, others much
    contents: dict[int, bytearray] = defaultdict(bytearray)
    for at, (file, change) in enumerate(changes):
        fate = "kept" if at in durable else rng.choices(_FATES, odds)[0]
        _change(contents[file], change, fate, rng)
    n_kept = rng.randint(n_durable_namings, len(namings))
    names = {name: file for _, name, file in namings[:n_kept]}
    return {name: bytes(contents[file]) for name, file in names.items() if file is not None}


def _history(records: Sequence[Record]) -> tuple[list[Change], list[Naming], set[int], int]:
    """Return the changes of files and names, which of those are flushed, and how many of these."""
    changes, namings, durable, n_durable_namings = list[Change](), list[Naming](), set[int](), 0
    files: dict[str, int] = {}
    unflushed: dict[int, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        match record:
            case Create(name) | Write(name) | Truncate(name):
                if name not in files:
                    files[name] = len(namings)
                    namings.append((at, name, files[name]))
                if not isinstance(record, Create):
                    unflushed[files[name]].append(len(changes))
                    changes.append((files[name], record))
            case Delete(name) if name in files:
                del files[name]
                namings.append((at, name, None))
            case Sync(name) if name in files:
                durable.update(unflushed.pop(files[name], []))
            case SyncFolder():
                n_durable_namings = len(namings)
            case _:
                pass  # a promise
    return changes, namings, durable, n_durable_namings


def _change(content: bytearray, change: Write | Truncate, fate: Fate, rng: Random) -> None:
    match change, fate:
        case Truncate(), "kept":
            del content[change.size :]
            _grow(content, change.size)  # where a write before it was dropped
        case Write(), "kept":
            _put(content, change.offset, change.data)
        case Write(), "torn":
            for offset, data in _sectors(change):
                if rng.random() < 0.5:
                    _put(content, offset, data)
        case _:
            return  # dropped; a truncation cannot be torn


def _put(content: bytearray, offset: int, data: bytes) -> None:
    _grow(content, offset)
    content[offset : offset + len(data)] = data


def _grow(content: bytearray, size: int) -> None:
    content.extend(bytes(max(size - len(content), 0)))


def _sectors(write: Write) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a write that lie in one sector each."""
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield start, write.data[start - write.offset : stop - write.offset]
        start = stop
