"""Use case: take in the battles that a file holds, all or none.

They go into a stream of their own: a tournament's version and decisions stay as they are, and there
need be no tournament.
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
from commands.importing.formats.rows import BadRow, BattleRow, Records
from ledger.events.imports import (
    MAX_BATTLES,
    SIGNS,
    BattlesImported,
    CodedColumn,
    battles_stream,
    encode_cells,
)
from ledger.identity import Digest, StreamId
from ledger.storage.writer import draft
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import fold

_TELLING: Final = 8  # battles that differ; where fewer do, files are alike by chance
_N_BYTES: Final = 8  # of a hash


def n_battles_of_copy(found: bytes, before: Iterable[BattlesImported]) -> int | None:
    """Return how many battles the first file has that holds another's in a piece, or is held.

    In a piece and in order: people who vote on the same prompts agree on much, but not so.

    Args:
        found: The file's battles, by their hashes.
        before: Those of other files, in the same set.
    """
    files: defaultdict[Digest, list[bytes]] = defaultdict(list)
    for event in before:
        files[event.file_digest].append(battle_hashes(event))
    for earlier in map(b"".join, files.values()):
        fewer, more = (earlier, found) if len(earlier) < len(found) else (found, earlier)
        if len(set(memoryview(fewer).cast("q"))) >= _TELLING and contains_in_order(fewer, more):
            return len(earlier) // _N_BYTES
    return None


def battle_hashes(event: BattlesImported) -> bytes:
    """Return the hash of all that is said of each battle, one behind the other."""
    n, entrants = event.n_battles, dict(zip(SIGNS, event.entrants, strict=False))
    battles = zip(
        map(entrants.__getitem__, event.a),
        map(entrants.__getitem__, event.b),
        event.winners.cells(n),
        event.prefs.cells(n),
        event.prompts.cells(n),
        event.sources.cells(n),
        event.judges.cells(n),
        event.weights.cells(n),
        strict=True,
    )
    return array("q", map(hash, battles)).tobytes()


def contains_in_order(fewer: bytes, more: bytes) -> bool:
    """Say whether all hashes of one file stand in another's, in a piece."""
    place = more.find(fewer)
    while place > 0 and place % _N_BYTES:  # in the middle of a hash
        place = more.find(fewer, place + 1)
    return place >= 0


@dataclass
class BattleImport:
    """What a file held, counted as it is read."""

    n_battles: int = 0
    n_known: int = 0  # battles that were on the ledger already
    n_before: int = 0  # battles of other files in the set
    winners: Counter[str] = field(default_factory=Counter)
    entrants: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    n_skipped: int = 0  # rows that are no battles
    skipped: list[BadRow] = field(default_factory=list)  # the first of them

    @property
    def n_in_set(self) -> int:
        """How many battles the set holds now."""
        return self.n_before + self.n_battles

    def skip(self, row: BadRow) -> None:
        """Count a row that is no battle."""
        self.n_skipped += 1
        if len(self.skipped) < N_LINES:
            self.skipped.append(row)

    def add(self, event: BattlesImported, *, is_new: bool) -> None:
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
    """Append a file's battles; doing it again, or after it was broken off, appends them once.

    Args:
        ledger: Open for writing; others wait until the end.
        file: What is read, to be named by its digest.
        of: Its format.
        records: Its rows.
        name: Of the set of battles that they join.
        skip_bad: Whether to leave out rows that are no battles.

    Raises:
        ConfigurationError: Rows are no battles and are not to be left out, there is no battle,
            it is a file of the set, grown or cut, or the file changed meanwhile;
            nothing was appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    digest, stream, taken = _digest_of(file), battles_stream(name), BattleImport()
    before, found = _battles_before(ledger, stream), list[bytes]()
    others = [event for event in before if event.file_digest != digest]
    taken.n_before = sum(event.n_battles for event in others)
    with ledger.merging() as writer:
        for number, chunk in enumerate(_chunks(of.read(records), taken), start=1):
            if taken.n_skipped and not skip_bad:
                continue  # to count what else is wrong
            event = _event(chunk, of, digest, number)
            (receipt,) = writer.append(stream, [draft(stream, event)], expected_version=None)
            writer.flush()
            taken.add(event, is_new=receipt.is_new)
            if others:
                found.append(battle_hashes(event))
        _require_battles(file, of, taken, skip_bad=skip_bad)
        if len(others) == len(before):
            _require_new(file, name, n_battles_of_copy(b"".join(found), others), taken)
        if _digest_of(file) != digest:
            raise ConfigurationError([f"{file}: it changed while it was read; import it again"])
    return taken


class _Chunk(NamedTuple):
    battles: Sequence[BattleRow]
    n_skipped: int  # rows among them and behind them that are no battles


def _chunks(rows: Iterable[BattleRow | BadRow], taken: BattleImport) -> Iterator[_Chunk]:
    """Yield as many battles as an event holds, time and again; what is none is noted."""
    battles: list[BattleRow] = []
    n_skipped = 0  # up to the chunk
    for row in rows:
        if isinstance(row, BadRow):
            taken.skip(row)
            continue
        if len(battles) == MAX_BATTLES:
            yield _Chunk(battles, taken.n_skipped - n_skipped)
            battles, n_skipped = [], taken.n_skipped
        battles.append(row)
    if battles:
        yield _Chunk(battles, taken.n_skipped - n_skipped)


def _event(chunk: _Chunk, of: BattleFormat, digest: Digest, number: int) -> BattlesImported:
    """Turn rows into columns."""
    a, b, winners, prefs, prompts, sources, judges, weights = zip(*chunk.battles, strict=True)
    entrants = tuple(dict.fromkeys((*a, *b)))
    return BattlesImported(
        file_digest=digest,
        format=of.name,
        mapping_version=of.mapping_version,
        chunk=number,
        n_skipped=chunk.n_skipped,
        entrants=entrants,
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=CodedColumn.of(winners),
        prefs=CodedColumn.of(prefs),
        prompts=CodedColumn.of(prompts),
        sources=CodedColumn.of(sources),
        judges=CodedColumn.of(judges),
        weights=CodedColumn.of(weights),
    )


def _require_battles(file: Path, of: BattleFormat, taken: BattleImport, *, skip_bad: bool) -> None:
    if taken.n_skipped and not skip_bad:
        rows = f"{file}: format {of.name} cannot read {counted(taken.n_skipped, 'row')}"
        remedy = "nothing is imported; correct them, or leave them out with --skip-bad"
        raise ConfigurationError([f"{rows}: {remedy}", *bad_rows(file, taken)])
    if not taken.n_battles:
        raise ConfigurationError([f"{file}: it holds no battle of format {of.name}"])


def _battles_before(ledger: Ledger, stream: StreamId) -> Sequence[BattlesImported]:
    """Return the battles that a set holds, and that count."""
    return fold(IMPORTED_BATTLES, ledger.read(stream=stream, types={"BattlesImported"})).events


def _require_new(file: Path, name: str, n_earlier: int | None, taken: BattleImport) -> None:
    if n_earlier is not None:
        n_shared = min(n_earlier, taken.n_battles)
        some = f"{n_shared} of its {counted(taken.n_battles, 'battle')}"
        other = f"another file, of {counted(n_earlier, 'battle')}"
        remedy = "import a file of the new rows alone, or all rows under another --name"
        why = f"are in set {name!r} already, word for word, from {other}, and would count twice"
        raise ConfigurationError([f"{file}: {some} {why}; nothing is imported: {remedy}"])


def bad_rows(file: Path, taken: BattleImport) -> Iterator[str]:
    """Say of the first rows why they are no battles."""
    lines = [f"{file}:{row.line}: {row.why}" for row in taken.skipped]
    return first_lines(lines, taken.n_skipped, "row")


def _digest_of(file: Path) -> Digest:
    try:
        with file.open("rb") as opened:
            return Digest(hashlib.file_digest(opened, "sha256").hexdigest())
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from error
