"""LMArena's votes: what people preferred of two anonymous models, in its three public layouts.

Conversations of any length are imported; JudgeArena rates those of one turn only.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from commands.importing.formats.rows import (
    BattleRow,
    Fields,
    InvalidFields,
    mapped_value,
    optional_number,
    row_by_row,
    shorten,
    text,
)
from ledger.events.imports import Winner

_FLAGS: Final[Mapping[str, Winner]] = MappingProxyType(
    {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}
)
_WINNERS: Final[Mapping[str, Winner]] = MappingProxyType(
    {
        "model_a": "model_a",
        "model_b": "model_b",
        "tie": "tie",
        "tie (bothbad)": "tie (bothbad)",  # arena-human-preference-100k
        "both_bad": "tie (bothbad)",  # arena-human-preference-140k
    }
)


def _votes_55k(fields: Fields) -> Iterator[BattleRow]:
    yield _vote(fields, _flagged(fields), question_id="id")


def _votes_100k(fields: Fields) -> Iterator[BattleRow]:
    yield _vote(fields, mapped_value(fields, "winner", _WINNERS), question_id="question_id")


def _votes_140k(fields: Fields) -> Iterator[BattleRow]:
    yield _vote(fields, mapped_value(fields, "winner", _WINNERS), question_id="id")


def _vote(fields: Fields, winner: Winner, *, question_id: str) -> BattleRow:
    return BattleRow(
        model_a=text(fields, "model_a"),
        model_b=text(fields, "model_b"),
        winner=winner,
        pref=None,
        question_id=text(fields, question_id),
        source="human",
        judge_model=None,
    )


def _flagged(fields: Fields) -> Winner:
    """Return the winner whose flag is 1; a tie may mean that both were bad.

    Raises:
        InvalidFields: The flags are not one 1 and two 0.
    """
    flags = {name: optional_number(fields, name) for name in _FLAGS}
    if sorted(flag for flag in flags.values() if flag is not None) != [0, 0, 1]:
        said = ", ".join(f"{name} {shorten(fields.get(name))}" for name in _FLAGS)
        raise InvalidFields(f"{said}: one must be 1, the others 0")
    return next(winner for name, winner in _FLAGS.items() if flags[name])


read_55k = row_by_row(_votes_55k)
read_100k = row_by_row(_votes_100k)
read_140k = row_by_row(_votes_140k)
