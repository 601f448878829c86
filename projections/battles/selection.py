"""Select battles of an imported set by what its columns say: a category, a language, a judge."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import compress
from typing import Final, TypeAlias

from ledger.events.imports import BattlesImported, CodedColumn

Cell: TypeAlias = str | tuple[str, ...] | None
Where: TypeAlias = Mapping[str, Collection[str]]
"""By column the values that are kept; of several columns, each must be right."""

COLUMNS: Final[Mapping[str, str]] = {
    "category": "categories",
    "language": "languages",
    "judge": "judges",
    "source": "sources",
}
"""The columns to select by, each with its field of an event."""


def values_of(events: Iterable[BattlesImported]) -> dict[str, list[str]]:
    """Return the values that there are in each column that has any, in alphabetical order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        for name in COLUMNS:
            for cell in _column(event, name).values:
                found[name].update(_said(cell))
    return {name: sorted(found[name]) for name in COLUMNS if found[name]}


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
