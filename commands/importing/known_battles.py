"""The battles that a set already holds, so that importing another file adds none of them again.

A battle whose prompt has an id is recognised by all that is said of it, wherever it stands in a
file; what a file has twice is there twice. Without prompt ids battles are too much alike: ten wins
of x over y may be anybody's. They are recognised in long runs only, as a file that has grown or was
cut has them, or where a whole file has the same ones in another order.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, TypeAlias
from unicodedata import normalize

from ledger.events.imports import BattlesImported, ImportedBattle
from ledger.identity import Digest

_MIN_DISTINCT: Final = 8  # distinct battles; fewer could match by chance
_N_BYTES: Final = 8  # of a hash

Mapped: TypeAlias = tuple[str, int]
"""The name and the version of the mapping that read a file."""


class FileRead(NamedTuple):
    """A file, and the mapping that read it."""

    digest: Digest
    mapping: Mapped


def _hash(battle: ImportedBattle) -> int:
    """Return the hash of a battle; of unknown source it was once taken for people's."""
    return hash(battle._replace(source="human") if battle.source == "unknown" else battle)


@dataclass
class BattleHashes:
    """Hashes of a file's battles, in order."""

    named: "array[int]" = field(default_factory=lambda: array("q"))  # those with a prompt id
    nameless: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, battle: ImportedBattle) -> None:
        """Add a battle after the others."""
        (self.nameless if battle.question_id is None else self.named).append(_hash(battle))


class KnownBattles:
    """The battles of a set, by the file that brought them."""

    def __init__(self, events: Iterable[BattlesImported] = ()) -> None:
        self._files: defaultdict[FileRead, BattleHashes] = defaultdict(BattleHashes)
        self.n_battles = 0
        self.entrants: set[str] = set()
        for event in events:
            self.add(FileRead(event.file_digest, mapping_of(event)), event.battles())

    def add(self, file: FileRead, battles: Iterable[ImportedBattle]) -> None:
        """Add the battles that a file brought."""
        hashes = self._files[file]
        for battle in battles:
            hashes.add(battle)
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
        others = {
            other: hashes
            for other, hashes in self._files.items()
            if other.digest != file.digest or other == file
        }
        return Recogniser(
            left=Counter(chain.from_iterable(each.named for each in others.values())),
            files=[hashes.nameless for other, hashes in others.items() if other != file],
            is_known=file in others,
        )


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
    _new: BattleHashes = field(default_factory=BattleHashes)

    def knows(self, battle: ImportedBattle) -> bool:
        """Say whether the set holds the next battle of the file."""
        if battle.question_id is None:
            if not self.is_known and self.files:
                self._new.add(battle)
            return self.is_known
        if not self.left or not self.left[key := _hash(battle)]:
            return False
        self.left[key] -= 1
        return True

    def n_battles_of_copy(self) -> int | None:
        """Return the number of battles in a file that holds this one's, or some of them."""
        found = self._new.nameless
        for earlier in self.files:
            fewer, more = (earlier, found) if len(earlier) < len(found) else (found, earlier)
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


def mapping_of(event: BattlesImported) -> Mapped:
    """Return the mapping that read the battles of an event."""
    return event.format, event.mapping_version
