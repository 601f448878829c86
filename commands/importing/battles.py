"""Use cases of `tourney import battles` and `elo-ratings`: append what files hold to a set.

Of the battles of files all are appended, or none. Each named set of battles is a stream of its own,
so no tournament is needed and none changes.

A set takes no battle again that another file brought. One whose prompt has an id is recognised by
all that is said of it, wherever it stands in a file; what a file has twice is there twice. Without
prompt ids battles are too much alike: ten wins of x over y may be anybody's. They are recognised in
long runs only, as a file that has grown or was cut has them, or where a whole file has the same
ones in another order.

The ratings of JudgeArena's elo_ratings.json are shown beside tourney's own; nothing is computed
from them.
"""

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple
from unicodedata import normalize

from commands.errors import N_LINES, ConfigurationError, counted, first_lines
from commands.importing.formats.files import decode_json, reading
from commands.importing.formats.rows import (
    BadRow,
    BattleFormat,
    Cells,
    InvalidFields,
    Records,
    shorten,
)
from ledger.events import imports
from ledger.events.imports import (
    BattlesImported,
    ImportedBattle,
    ImportedRating,
    RatingsImported,
    RatingSource,
    battles_stream,
)
from ledger.identity import Digest, digest_of_bytes
from ledger.storage.writer import EventWriter, draft
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_BATTLES
from projections.fold import fold

_MIN_DISTINCT: Final = 8  # distinct battles; fewer could match by chance
_N_BYTES: Final = 8  # of a hash


class FileRead(NamedTuple):
    """A file, and the mapping that read it."""

    digest: Digest
    format: str
    mapping_version: int


class KnownBattles:
    """The battles of a set as hashes, in order, by the file that brought them."""

    def __init__(self, events: Iterable[BattlesImported] = ()) -> None:
        self._named = defaultdict[FileRead, "array[int]"](_no_hashes)  # those with a prompt id
        self._nameless = defaultdict[FileRead, "array[int]"](_no_hashes)
        self.n_battles = 0
        self.entrants: set[str] = set()
        for event in events:
            file = FileRead(event.file_digest, event.format, event.mapping_version)
            self.add(file, event.battles())

    def add(self, file: FileRead, battles: Iterable[ImportedBattle]) -> None:
        """Add the battles that a file brought."""
        for battle in battles:
            hashes = self._nameless if battle.question_id is None else self._named
            hashes[file].append(_hash(battle))
            self.entrants.update((battle.model_a, battle.model_b))
            self.n_battles += 1

    def look_alikes(self) -> list[list[str]]:
        """Return names that people would read as one: in other forms of Unicode, or other case."""
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(self.entrants):
            groups[normalize("NFKC", normalize("NFKC", name).casefold()).strip()].append(name)
        return [names for names in groups.values() if len(names) > 1]

    def seen_by(self, file: FileRead) -> "Recogniser":
        """Return what recognises a file's battles; what another mapping made of it is replaced."""

        def counts(other: FileRead) -> bool:
            return other.digest != file.digest or other == file

        named = (hashes for other, hashes in self._named.items() if counts(other))
        nameless = self._nameless.items()
        return Recogniser(
            left=Counter(chain.from_iterable(named)),
            files=[each for other, each in nameless if counts(other) and other != file],
            is_known=file in self._named or file in self._nameless,
        )


def _no_hashes() -> "array[int]":
    return array("q")


def _hash(battle: ImportedBattle) -> int:
    """Return the hash of a battle; of unknown source it was once taken for people's."""
    return hash(battle._replace(source="human") if battle.source == "unknown" else battle)


@dataclass
class Recogniser:
    """Recognises the battles of one file, which are asked for in order.

    Attributes:
        left: Battles with a prompt id that the file may still repeat, by their hashes.
        files: Hashes of the battles without one, of each other file.
        is_known: Whether the file was read before.
    """

    left: Counter[int]
    files: list["array[int]"]
    is_known: bool
    _new: "array[int]" = field(default_factory=_no_hashes)  # without a prompt id

    def knows(self, battle: ImportedBattle) -> bool:
        """Say whether the set holds the next battle of the file."""
        if battle.question_id is None:
            if not self.is_known and self.files:
                self._new.append(_hash(battle))
            return self.is_known
        if not self.left or not self.left[key := _hash(battle)]:
            return False
        self.left[key] -= 1
        return True

    def n_battles_of_copy(self) -> int | None:
        """Return the number of battles in a file that holds this one's, or some of them."""
        for earlier in self.files:
            fewer, more = sorted((earlier, self._new), key=len)
            if len(set(fewer)) >= _MIN_DISTINCT and _is_part(fewer, more):
                return len(earlier)
        return None


def _is_part(fewer: "array[int]", more: "array[int]") -> bool:
    """Say whether a file holds another's battles in a piece, or all of them in any order."""
    if contains_in_order(fewer.tobytes(), more.tobytes()):
        return True
    return len(fewer) == len(more) and sorted(fewer) == sorted(more)


def contains_in_order(fewer: bytes, more: bytes) -> bool:
    """Return whether one file's hashes occur in another's, in order and without gaps."""
    offset = more.find(fewer)
    while offset > 0 and offset % _N_BYTES:  # in the middle of a hash
        offset = more.find(fewer, offset + 1)
    return offset >= 0


class BattleFile(NamedTuple):
    """A file of battles of a format, and the set that they join."""

    path: Path
    records: Records
    of: BattleFormat
    name: str
    content: Path | None = None  # where its bytes lie, if not there


@dataclass
class BattleImport:
    """Counts of a file's battles, kept while it is read."""

    file: BattleFile
    n_before: int = 0  # battles in the set before
    n_battles: int = 0
    n_known: int = 0  # battles that the set already had
    unrated: Counter[str] = field(default_factory=Counter)  # rows left out, by the reason
    winners: Counter[str] = field(default_factory=Counter)
    entrants: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    n_skipped: int = 0  # rows that cannot be read as battles
    skipped: list[BadRow] = field(default_factory=list)  # the first of these rows
    look_alikes: list[list[str]] = field(default_factory=list)  # in the set

    @property
    def n_in_set(self) -> int:
        """Number of battles in the set after the import."""
        return self.n_before + self.n_battles - self.n_known

    @property
    def n_left_out(self) -> int:
        """Number of rows of which no battle was made."""
        return self.n_skipped + self.unrated.total()

    def skip(self, row: BadRow) -> None:
        """Count a row that is not rated, or cannot be read as a battle."""
        if row.is_unrated:
            self.unrated[row.why] += 1
            return
        self.n_skipped += 1
        if len(self.skipped) < N_LINES:
            self.skipped.append(row)

    def add(self, battles: Sequence[ImportedBattle], *, n_new: int) -> None:
        """Count battles, so many of which are new to the set."""
        self.n_battles += len(battles)
        self.n_known += len(battles) - n_new
        self.winners.update(battle.winner for battle in battles)
        self.entrants.update(battle.model_a for battle in battles)
        self.entrants.update(battle.model_b for battle in battles)
        self.judges.update(filter(None, (battle.judge_model for battle in battles)))


def import_battles(
    ledger: Ledger, files: Sequence[BattleFile], *, skip_bad: bool = False
) -> list[BattleImport]:
    """Append the battles of files that their sets do not hold yet; repeating it is harmless.

    Raises:
        ConfigurationError: Rows cannot be read and are not to be skipped, a file has no battle,
            overlaps another file of the set, or changed while it was read; nothing was appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    known = {file.name: _known(ledger, file.name) for file in files}
    with ledger.writing() as writer:
        return [_import(writer, file, known[file.name], skip_bad=skip_bad) for file in files]


def _known(ledger: Ledger, name: str) -> KnownBattles:
    recorded = ledger.read(stream=imports.battles_stream(name), types={"BattlesImported"})
    return KnownBattles(fold(IMPORTED_BATTLES, recorded).events)


def _import(
    writer: EventWriter, file: BattleFile, known: KnownBattles, *, skip_bad: bool
) -> BattleImport:
    """Append the battles of a file that its set does not hold."""
    read = FileRead(_digest_of(file), file.of.name, file.of.mapping_version)
    taken, recogniser = BattleImport(file, n_before=known.n_battles), known.seen_by(read)
    stream, chunk = imports.battles_stream(file.name), 0
    for battles, n_skipped in _chunks(file.of.read(file.records), taken):
        if taken.n_skipped and not skip_bad:
            continue  # count the other bad rows
        new = [battle for battle in battles if not recogniser.knows(battle)]
        taken.add(battles, n_new=len(new))
        if new:
            known.add(read, new)
            chunk += 1
            event = BattlesImported.of(
                new, file_digest=read.digest, mapping=read[1:], chunk=chunk, n_skipped=n_skipped
            )
            writer.append(stream, [draft(stream, event)], expected_version=None)
    _require_battles(taken, skip_bad=skip_bad)
    _require_new(taken, recogniser.n_battles_of_copy())
    if _digest_of(file) != read.digest:
        raise ConfigurationError([f"{file.path} changed while it was read; import it again"])
    taken.look_alikes = known.look_alikes()
    return taken


def _chunks(
    rows: Iterable[ImportedBattle | BadRow], taken: BattleImport
) -> Iterator[tuple[Sequence[ImportedBattle], int]]:
    """Yield battles in chunks that fit one event, and how many rows were left out among them."""
    battles: list[ImportedBattle] = []
    n_before = 0  # rows left out before this chunk
    for row in rows:
        if isinstance(row, BadRow):
            taken.skip(row)
            continue
        if len(battles) == imports.MAX_BATTLES:
            yield battles, taken.n_left_out - n_before
            battles, n_before = [], taken.n_left_out
        battles.append(row)
    if battles:
        yield battles, taken.n_left_out - n_before


def _require_battles(taken: BattleImport, *, skip_bad: bool) -> None:
    file, of = taken.file.path, taken.file.of
    if taken.n_skipped and not skip_bad:
        rows = f"{file}: {counted(taken.n_skipped, 'row')} cannot be read as format {of.name}"
        remedy = "nothing was imported; correct them, or use --skip-bad to skip them"
        raise ConfigurationError([f"{rows}: {remedy}", *bad_rows(taken)])
    if not taken.n_battles:
        why = "".join(f"; {note}" for note in unrated_notes(taken))
        raise ConfigurationError([f"{file} has no battle of format {of.name}{why}"])


def _require_new(taken: BattleImport, n_earlier: int | None) -> None:
    """Refuse battles without prompt ids that another file of the set has, too."""
    if n_earlier is None:
        return
    n_shared = min(n_earlier, taken.n_battles - taken.n_known)
    some = f"{n_shared} of its {counted(taken.n_battles, 'battle')}"
    other = f"another file, of {counted(n_earlier, 'battle')}"
    why = f"are already in set {taken.file.name!r}, from {other}, and would count twice"
    remedy = "give each prompt a question_id, import only the new rows, or use another --name"
    raise ConfigurationError([f"{taken.file.path}: {some} {why}; nothing was imported; {remedy}"])


def unrated_notes(taken: BattleImport) -> Iterator[str]:
    """Yield how many votes were left out, as the program that they come from does, and why."""
    for why, n in sorted(taken.unrated.items()):
        yield f"{counted(n, 'vote')} left out: {why}"


def bad_rows(taken: BattleImport) -> Iterator[str]:
    """Yield one line for each of the first bad rows, with the reason."""
    lines = [f"{taken.file.path}:{row.line}: {row.why}" for row in taken.skipped]
    return first_lines(lines, taken.n_skipped, "row")


def _digest_of(file: BattleFile) -> Digest:
    with reading(file.path), (file.content or file.path).open("rb") as opened:
        return Digest(hashlib.file_digest(opened, "sha256").hexdigest())


_MAPPING_VERSION: Final = 1
_SOURCES: Final[Mapping[str, RatingSource]] = {"evaluated": "evaluated", "human": "human"}


def import_ratings(ledger: Ledger, file: Path, *, name: str) -> RatingsImported:
    """Append a file's ratings; repeating it is harmless.

    The file is recorded by its digest; `name` is the set of battles that they belong to.

    Raises:
        ConfigurationError: The file cannot be read, or is not an elo_ratings.json; nothing was
            appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    event = _event(file)
    ledger.append(battles_stream(name), [event])
    return event


def _event(file: Path) -> RatingsImported:
    with reading(file):
        content = file.read_bytes()
    if not content.strip():
        raise ConfigurationError([f"{file}: the file is empty"])
    try:
        return _ratings(decode_json(content), digest_of_bytes(content))
    except (InvalidFields, ValueError) as error:
        raise ConfigurationError([f"{file} is not an elo_ratings.json: {error}"]) from error


def _ratings(found: object, digest: Digest) -> RatingsImported:
    if not isinstance(found, dict) or not isinstance(found.get("ratings"), list):
        raise InvalidFields("the list `ratings` is missing")
    cells = Cells(found)
    return RatingsImported(
        file_digest=digest,
        format="judgearena",
        mapping_version=_MAPPING_VERSION,
        arena=cells.optional_text("arena"),
        evaluated=cells.optional_text("model"),
        judge_model=cells.optional_text("judge_model"),
        n_bootstraps=cells.optional_count("n_bootstraps"),
        seed=cells.optional_count("seed"),
        ratings=tuple(map(_rating, found["ratings"])),
    )


def _rating(found: object) -> ImportedRating:
    if not isinstance(found, dict):
        raise InvalidFields(f"{shorten(found)} is not a rating")
    cells = Cells(found)
    entrant, rating = cells.text("model"), cells.optional_number("rating")
    if rating is None:
        raise InvalidFields(f"{entrant!r} has no rating")
    return ImportedRating(
        entrant=entrant,
        rating=rating,
        ci_low=cells.optional_number("ci_low"),
        ci_high=cells.optional_number("ci_high"),
        n_battles=cells.optional_count("n_battles"),
        source=cells.mapped_value("source", _SOURCES),
        dimension=cells.optional_text("dimension"),
    )
