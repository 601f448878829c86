"""What the rows of a file become: battles, or the reason why they are none."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from ledger.events.imports import Source, Winner

Fields: TypeAlias = Mapping[str, object]
_EVEN: Final = 0.5  # the preference that is for neither


class BattleRow(NamedTuple):
    """Two entrants compared on one prompt, by a judge or by people."""

    model_a: str
    model_b: str
    winner: Winner
    pref: float | None  # that b is better: 0 is a, 1/2 a tie, 1 is b; None: not said
    question_id: str | None  # battles of one prompt have the same
    source: Source
    judge_model: str | None
    weight: float = 1.0


class BadRow(NamedTuple):
    """A row that is no battle, and why."""

    line: int  # from 1; in a Parquet file or an array, the row
    why: str


class Record(NamedTuple):
    """A row of a file as its kind of file says it, with no meaning yet."""

    line: int  # as above
    fields: Fields


Records: TypeAlias = Iterable[Record | BadRow]
Reader: TypeAlias = Callable[[Records], Iterator[BattleRow | BadRow]]
"""Says what records mean in one format; what is bad already stays so."""

Mapper: TypeAlias = Callable[[Fields], Iterable[BattleRow]]


class Unmapped(Exception):
    """A row's fields are no battle; the message says which field, and what is wrong with it."""


def row_by_row(mapper: Mapper) -> Reader:
    """Return the reader of a format whose rows mean something each by itself.

    Args:
        mapper: Gives the battles of a row, none to leave it out, or raises Unmapped.
    """

    def read(records: Records) -> Iterator[BattleRow | BadRow]:
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            try:
                rows = tuple(map(_sound, mapper(record.fields)))
            except Unmapped as error:
                yield BadRow(record.line, str(error))
            else:
                yield from rows

    return read


def _sound(row: BattleRow) -> BattleRow:
    if row.model_a == row.model_b:
        raise Unmapped(f"{row.model_a!r} battles itself")
    if row.winner == "no verdict" and row.pref is not None:
        raise Unmapped(f"there is no verdict, and yet a preference: {row.pref!r}")
    if row.pref is not None and _is_against(row.pref, row.winner):
        raise Unmapped(
            f"winner is {row.winner}, and yet pref is {row.pref!r}: it is how probably b is better"
        )
    return row


def _is_against(pref: float, winner: Winner) -> bool:
    """Say whether a preference is for who lost; a tie may be called at any."""
    return (winner == "model_a" and pref > _EVEN) or (winner == "model_b" and pref < _EVEN)
