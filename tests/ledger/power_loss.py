"""What a power loss leaves of the files on a disk."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np

from tests.ledger.recording_disk import Create, Delete, Operation, Sync, SyncFolder, Truncate, Write

SECTOR: Final = 512  # bytes that a disk writes whole or not at all

Fate = Literal["kept", "dropped", "torn"]
_FATES: Final[tuple[Fate, ...]] = ("kept", "dropped", "torn")


def after_power_loss(log: Sequence[Operation], rng: np.random.Generator) -> dict[str, bytes]:
    """Return the files, by name, that a power loss at the end of a log may leave.

    What was synced is there. Of the rest each truncation is kept or dropped, each write kept,
    dropped or torn between sectors; names change in order, up to some change.
    """
    synced = {each.file: at for at, each in enumerate(log) if isinstance(each, Sync)}
    contents: dict[int, bytearray] = {}
    odds = rng.dirichlet((0.5, 0.5, 0.5))  # so that some states lose little and others much
    for at, operation in enumerate(log):
        if isinstance(operation, Write | Truncate):
            is_synced = at < synced.get(operation.file, 0)
            fate = "kept" if is_synced else _FATES[rng.choice(3, p=odds)]
            _change(contents.setdefault(operation.file, bytearray()), operation, fate, rng)
    names = _names_after(log, rng)
    return {name: bytes(contents.get(file, b"")) for name, file in names.items()}


def without_syncs(log: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return what a disk does that says to have synced and has not."""
    return tuple(each for each in log if not isinstance(each, Sync | SyncFolder))


def _change(
    content: bytearray, operation: Write | Truncate, fate: Fate, rng: np.random.Generator
) -> None:
    match operation, fate:
        case Truncate(), "kept":
            del content[operation.size :]
            _grow(content, operation.size)  # where a write before it was dropped
        case Write(), "kept":
            _put(content, operation)
        case Write(), "torn":
            for sector in _sectors(operation):
                if rng.random() < 0.5:
                    _put(content, sector)
        case _:
            return  # dropped; a truncation cannot be torn


def _put(content: bytearray, write: Write) -> None:
    _grow(content, write.offset)
    content[write.offset : write.offset + len(write.data)] = write.data


def _grow(content: bytearray, size: int) -> None:
    content.extend(bytes(max(size - len(content), 0)))


def _sectors(write: Write) -> Iterator[Write]:
    """Yield the parts of a write that lie in one sector each."""
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Write(write.file, start, write.data[start - write.offset : stop - write.offset])
        start = stop


def _names_after(log: Sequence[Operation], rng: np.random.Generator) -> dict[str, int]:
    changes = [(at, each) for at, each in enumerate(log) if isinstance(each, Create | Delete)]
    synced = max((at for at, each in enumerate(log) if isinstance(each, SyncFolder)), default=-1)
    n_synced = sum(at < synced for at, _ in changes)
    n_kept = rng.integers(n_synced, len(changes), endpoint=True)
    names: dict[str, int] = {}
    for _, change in changes[:n_kept]:
        match change:
            case Create(file, name):
                names[name] = file
            case Delete(name):
                del names[name]
    return names
