"""Use case of `tourney import battles`: append a file's battles to the ledger, all or none.

Each named set of battles is a stream of its own, so no tournament is needed and none changes.
"""

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import N_LINES, ConfigurationError, counted, first_lines
from commands.importing.formats.catalogue import BattleFormat
from commands.importing.formats.rows import BadRow, Records
from ledger.events import imports
from ledger.events.imports import ImportedBattle
from ledger.identity import Digest
from ledger.storage.writer import draft
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_BATTLES
from projections.fold import fold

_MIN_DISTINCT: Final = 8  # distinct battles; fewer could match by chance
_N_BYTES: Final = 8  # of a hash


def _n_battles_of_copy(found: bytes, before: Iterable[imports.BattlesImported]) -> int | None:
    """Return the number of battles in an earlier file that contains this one, or is part of it.

    They match in order, without gaps: people often agree on a prompt, but not in long runs.
    """
    files: defaultdict[Digest, list[bytes]] = defaultdict(list)
    for event in before:
        files[event.file_digest].append(_battle_hashes(event))
    for earlier in map(b"".join, files.values()):
        fewer, more = (earlier, found) if len(earlier) < len(found) else (found, earlier)
        n_distinct = len(set(memoryview(fewer).cast("q")))
        if n_distinct >= _MIN_DISTINCT and contains_in_order(fewer, more):
            return len(earlier) // _N_BYTES
    return None


def _battle_hashes(event: imports.BattlesImported) -> bytes:
    """Return the 8-byte hashes of an event's battles, concatenated."""
    return array("q", map(hash, event.battles())).tobytes()


def contains_in_order(fewer: bytes, more: bytes) -> bool:
    """Return whether one file's hashes occur in another's, in order and without gaps."""
    offset = more.find(fewer)
    while offset > 0 and offset % _N_BYTES:  # in the middle of a hash
        offset = more.find(fewer, offset + 1)
    return offset >= 0


@dataclass
class BattleImport:
    """Counts of a file's battles, kept while it is read."""

    n_battles: int = 0
    n_known: int = 0  # battles that the ledger already had
    n_before: int = 0  # battles of other files in the set
    winners: Counter[str] = field(default_factory=Counter)
    entrants: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    n_skipped: int = 0  # rows that cannot be read as battles
    skipped: list[BadRow] = field(default_factory=list)  # the first of these rows

    @property
    def n_in_set(self) -> int:
        """Number of battles in the set after the import."""
        return self.n_before + self.n_battles

    def skip(self, row: BadRow) -> None:
        """Count a row that cannot be read as a battle."""
        self.n_skipped += 1
        if len(self.skipped) < N_LINES:
            self.skipped.append(row)

    def add(self, event: imports.BattlesImported, *, is_new: bool) -> None:
        """Count the battles of an event."""
        self.n_battles += event.n_battles
        self.n_known += 0 if is_new else event.n_battles
        self.winners.update(event.winners.cells(event.n_battles))
        self.entrants.update(event.entrants)
        self.judges.update(judge for judge in event.judges.values if judge is not None)


def import_battles(
    ledger: Ledger,
    file: Path,
    of: BattleFormat,
    records: Records,
    *,
    name: str,
    skip_bad: bool = False,
) -> BattleImport:
    """Append a file's battles to a set; repeating it is harmless.

    Raises:
        ConfigurationError: Rows cannot be read and are not to be skipped, the file has no battle,
            it overlaps another file of the set, or it changed while it was read; nothing was
            appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    digest, stream, taken = _digest_of(file), imports.battles_stream(name), BattleImport()
    imported = ledger.read(stream=stream, types={"BattlesImported"})
    before, found = fold(IMPORTED_BATTLES, imported).events, list[bytes]()
    others = [event for event in before if event.file_digest != digest]
    taken.n_before = sum(event.n_battles for event in others)
    with ledger.writing() as writer:
        for number, chunk in enumerate(_chunks(of.read(records), taken), start=1):
            if taken.n_skipped and not skip_bad:
                continue  # count the other bad rows
            event = imports.BattlesImported.of(
                chunk.battles,
                file_digest=digest,
                mapping=(of.name, of.mapping_version),
                chunk=number,
                n_skipped=chunk.n_skipped,
            )
            (receipt,) = writer.append(stream, [draft(stream, event)], expected_version=None)
            writer.flush()
            taken.add(event, is_new=receipt.is_new)
            if others:
                found.append(_battle_hashes(event))
        _require_battles(file, of, taken, skip_bad=skip_bad)
        if len(others) == len(before):
            _require_new(file, name, _n_battles_of_copy(b"".join(found), others), taken)
        if _digest_of(file) != digest:
            raise ConfigurationError([f"{file} changed while it was read; import it again"])
    return taken


class _Chunk(NamedTuple):
    battles: Sequence[ImportedBattle]
    n_skipped: int  # bad rows among and after them


def _chunks(rows: Iterable[ImportedBattle | BadRow], taken: BattleImport) -> Iterator[_Chunk]:
    """Yield battles in chunks that fit one event; count the bad rows."""
    battles: list[ImportedBattle] = []
    n_skipped = 0  # before this chunk
    for row in rows:
        if isinstance(row, BadRow):
            taken.skip(row)
            continue
        if len(battles) == imports.MAX_BATTLES:
            yield _Chunk(battles, taken.n_skipped - n_skipped)
            battles, n_skipped = [], taken.n_skipped
        battles.append(row)
    if battles:
        yield _Chunk(battles, taken.n_skipped - n_skipped)


def _require_battles(file: Path, of: BattleFormat, taken: BattleImport, *, skip_bad: bool) -> None:
    if taken.n_skipped and not skip_bad:
        rows = f"{file}: {counted(taken.n_skipped, 'row')} cannot be read as format {of.name}"
        remedy = "nothing was imported; correct them, or use --skip-bad to skip them"
        raise ConfigurationError([f"{rows}: {remedy}", *bad_rows(file, taken)])
    if not taken.n_battles:
        raise ConfigurationError([f"{file} has no battle of format {of.name}"])


def _require_new(file: Path, name: str, n_earlier: int | None, taken: BattleImport) -> None:
    if n_earlier is not None:
        n_shared = min(n_earlier, taken.n_battles)
        some = f"{n_shared} of its {counted(taken.n_battles, 'battle')}"
        other = f"another file, of {counted(n_earlier, 'battle')}"
        remedy = "import only the new rows, or import all rows under another --name"
        why = f"are already in set {name!r}, from {other}, and would count twice"
        raise ConfigurationError([f"{file}: {some} {why}; nothing was imported; {remedy}"])


def bad_rows(file: Path, taken: BattleImport) -> Iterator[str]:
    """Yield one line for each of the first bad rows, with the reason."""
    lines = [f"{file}:{row.line}: {row.why}" for row in taken.skipped]
    return first_lines(lines, taken.n_skipped, "row")


def _digest_of(file: Path) -> Digest:
    try:
        with file.open("rb") as opened:
            return Digest(hashlib.file_digest(opened, "sha256").hexdigest())
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from error
