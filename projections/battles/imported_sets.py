"""Imported battles and ratings by the name of their set; which of them count, and how.

`battles_where` selects those of a set by a column, such as the category or the judge; of a
tournament, `said_of` says by what its prompts are selected. `with_unread` decides about battles
whose judge gave no readable verdict, on which programs differ: by default such a battle is left
out, as in arena-hard v0.1 and in JudgeArena's soft ratings; arena-hard v2.0 leaves out both games
of the prompt, and JudgeArena's hard ratings count a tie.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, Literal, NamedTuple, TypeAlias

from immutables import Map

from ledger.events.imports import (
    BattlesImported,
    CodedColumn,
    ImportedBattle,
    RatingsImported,
    Winner,
    set_of,
)
from ledger.events.registration import Prompt
from ledger.identity import Digest
from ledger.recorded import Recorded
from projections.fold import Projection, fold


@dataclass(frozen=True)
class ImportedBattles:
    """All imported battles in order, those of a file or a part of it with the name of their set."""

    chunks: tuple[tuple[str, BattlesImported], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets, in order of their first import."""
        return tuple(dict.fromkeys(name for name, _ in self.chunks))

    def of(self, names: Collection[str]) -> "ImportedBattles":
        """Select the battles of some sets."""
        return ImportedBattles(tuple(chunk for chunk in self.chunks if chunk[0] in names))

    @property
    def events(self) -> Sequence[BattlesImported]:
        """The battles that count: of each file, its last import only.

        A file may have been imported again by a corrected mapping, or into another set.
        """
        readings: dict[Digest, tuple[str, ...]] = {}
        for name, event in self.chunks:
            readings[event.file_digest] = _reading(name, event)
        return tuple(
            event
            for name, event in self.chunks
            if readings[event.file_digest] == _reading(name, event)
        )


def _reading(name: str, event: BattlesImported) -> tuple[str, ...]:
    _, mapping, _ = event.natural_key
    return (name, mapping)


def add_battles(state: ImportedBattles, events: Iterable[Recorded]) -> ImportedBattles:
    """Add imported battles, in order."""
    chunks = (
        (set_of(recorded.stream) or recorded.stream, recorded.event)
        for recorded in events
        if isinstance(recorded.event, BattlesImported)
    )
    return ImportedBattles((*state.chunks, *chunks))


IMPORTED_BATTLES: Final = Projection(initial=ImportedBattles(), advance=add_battles)

ImportedRatings: TypeAlias = Map[str, RatingsImported]
"""The newest imported ratings of each set, by its name."""


def add_ratings(state: ImportedRatings, events: Iterable[Recorded]) -> ImportedRatings:
    """Add imported ratings, in order."""
    newest = {
        set_of(recorded.stream) or recorded.stream: recorded.event
        for recorded in events
        if isinstance(recorded.event, RatingsImported)
    }
    return state.update(newest)


IMPORTED_RATINGS: Final[Projection[ImportedRatings]] = Projection(
    initial=Map(), advance=add_ratings
)

IMPORTED_EVENTS: Final = frozenset({"BattlesImported", "RatingsImported"})


class ImportedSet(NamedTuple):
    """Counts of a set; of a file that was imported twice, the last import only."""

    winners: Counter[Winner]  # how many battles were won by whom
    n_entrants: int  # in battles
    n_ratings: int  # in the newest file of them


def imported_sets(events: Collection[Recorded]) -> dict[str, ImportedSet]:
    """Return every imported set, by name."""
    battles, ratings = fold(IMPORTED_BATTLES, events), fold(IMPORTED_RATINGS, events)
    sets = {}
    for name in {*battles.names, *ratings}:
        chunks = battles.of([name]).events
        winners = Counter(cell for chunk in chunks for cell in chunk.winners.cells(chunk.n_battles))
        entrants = {entrant for chunk in chunks for entrant in chunk.entrants}
        n_ratings = len(ratings[name].ratings) if name in ratings else 0
        sets[name] = ImportedSet(winners, len(entrants), n_ratings)
    return dict(sorted(sets.items()))


Cell: TypeAlias = str | tuple[str, ...] | None
Where: TypeAlias = Mapping[str, Collection[str]]
"""By column the values that are kept; of several columns, each must be right."""

COLUMNS: Final[Mapping[str, str]] = {
    "category": "categories",
    "language": "languages",
    "judge": "judges",
    "source": "sources",
}
"""The columns to select a set's battles by, each with its field of an event."""
PROMPT_COLUMNS: Final = ("category", "source", "subject", "tag")
"""The columns to select a tournament's prompts by."""

Unread: TypeAlias = Literal["drop", "drop-pair", "tie"]
_Games: TypeAlias = tuple[str | None, frozenset[str], str | None]  # prompt, entrants, judge


def said_of(prompt: Prompt) -> Mapping[str, tuple[str, ...]]:
    """Return what a prompt says in each column."""
    category = () if prompt.category is None else (prompt.category,)
    said = (category, (prompt.source,), (prompt.subject,), prompt.tags)
    return dict(zip(PROMPT_COLUMNS, said, strict=True))


def values_of(events: Iterable[BattlesImported]) -> dict[str, list[str]]:
    """Return the values that there are in each column that has any, in alphabetical order."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        for name in COLUMNS:
            for cell in _column(event, name).values:
                values[name].update(_said(cell))
    return {name: sorted(values[name]) for name in COLUMNS if values[name]}


def battles_where(events: Iterable[BattlesImported], where: Where) -> Iterator[BattlesImported]:
    """Yield the events with those battles alone that have one of the values in each column."""
    for event in events:
        masks = [_mask(event, name, kept) for name, kept in where.items()]
        kept = [*compress(event.battles(), map(all, zip(*masks, strict=True)))]
        if kept:
            yield event.holding(kept)


def _mask(event: BattlesImported, name: str, kept: Collection[str]) -> list[bool]:
    """Say of each battle whether a column has one of the values."""
    column = _column(event, name)
    is_kept = {cell: not {*_said(cell)}.isdisjoint(kept) for cell in column.values}
    return [is_kept[cell] for cell in column.cells(event.n_battles)]


def _column(event: BattlesImported, name: str) -> CodedColumn[Cell]:
    column: CodedColumn[Cell] = getattr(event, COLUMNS[name])
    return column


def _said(cell: Cell) -> tuple[str, ...]:
    """Return what a cell says: a battle may have several categories."""
    if isinstance(cell, tuple):
        return cell
    return () if cell is None else (cell,)


def with_unread(events: Sequence[BattlesImported], rule: Unread) -> Sequence[BattlesImported]:
    """Return events whose battles without a judge's verdict are as a rule counts them.

    Args:
        events: Imported battles.
        rule: drop: as they are; tie: as ties; drop-pair: with them, what the same judge said of
            the same two entrants on the same prompt has no verdict.
    """
    if rule == "drop":
        return events
    unread = {
        _games(battle) for event in events for battle in event.battles() if _is_unread(battle)
    }
    return [
        event.holding([_counted(battle, rule, unread) for battle in event.battles()])
        for event in events
    ]


def _counted(battle: ImportedBattle, rule: Unread, unread: set[_Games]) -> ImportedBattle:
    """Return a battle as a rule other than drop counts it."""
    if rule == "tie":
        return battle._replace(winner="tie") if _is_unread(battle) else battle
    is_dropped = battle.source == "llm-judge" and _games(battle) in unread
    return battle._replace(winner="no verdict", pref=None) if is_dropped else battle


def _is_unread(battle: ImportedBattle) -> bool:
    return battle.winner == "no verdict" and battle.source == "llm-judge"


def _games(battle: ImportedBattle) -> _Games:
    entrants = frozenset((battle.model_a, battle.model_b))
    return battle.question_id, entrants, battle.judge_model
