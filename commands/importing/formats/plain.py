"""The plain format: one battle per row, in columns that are easy to write by hand or program."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, get_args

from commands.importing.formats.rows import (
    BattleRow,
    Fields,
    InvalidFields,
    is_missing,
    one_of,
    optional_number,
    optional_share,
    optional_text,
    row_by_row,
    text,
)
from ledger.events.imports import Source, Winner

_WINNERS: tuple[Winner, ...] = get_args(Winner)
_SOURCES: tuple[Source, ...] = get_args(Source)

NEEDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model_a": "an entrant",
        "model_b": "another",
        "winner": " | ".join(_WINNERS),
    }
)
"""The required columns, and what each holds."""

OPTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pref": "probability that model_b is better, from 0 to 1",
        "question_id": "id of the prompt",
        "source": f"{' | '.join(_SOURCES)}; default: human if there is no judge_model",
        "judge_model": "the judge",
        "weight": "weight of the battle, above 0; default: 1",
    }
)
"""The optional columns, and what each holds; their cells may be empty."""


def battle(fields: Fields) -> BattleRow:
    """Return the battle of a row.

    Without a `source`, a battle with a `judge_model` is a judge's, any other is people's.

    Raises:
        InvalidFields: A column is missing or wrong.
    """
    judge_model = optional_text(fields, "judge_model")
    by_default: Source = "human" if judge_model is None else "llm-judge"
    is_said = not is_missing(fields.get("source"))
    return BattleRow(
        model_a=text(fields, "model_a"),
        model_b=text(fields, "model_b"),
        winner=one_of(fields, "winner", _WINNERS),
        pref=optional_share(fields, "pref"),
        question_id=optional_text(fields, "question_id"),
        source=one_of(fields, "source", _SOURCES) if is_said else by_default,
        judge_model=judge_model,
        weight=weight(fields),
    )


def weight(fields: Fields) -> float:
    """Return a battle's weight, 1 if none is given.

    Raises:
        InvalidFields: The weight is not a number above 0.
    """
    given = optional_number(fields, "weight")
    if given is not None and given <= 0:
        raise InvalidFields(f"weight is {given!r}, but must be above 0")
    return 1.0 if given is None else given


def _battles(fields: Fields) -> Iterator[BattleRow]:
    yield battle(fields)


read = row_by_row(_battles)
