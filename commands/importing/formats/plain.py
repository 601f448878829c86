"""Battles in plain columns, for who writes a file by hand or from a program."""

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
"""What each column says that every table has."""

OPTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pref": "how probably model_b is better, from 0 to 1",
        "question_id": "the prompt: battles of one prompt have the same",
        "source": f"{' | '.join(_SOURCES)}; left out, human where there is no judge_model",
        "judge_model": "who judged",
        "weight": "how many battles it counts for, above 0; left out, 1",
    }
)
"""What each column says that a table may have; it may be empty in a row, too."""


def battle(fields: Fields) -> BattleRow:
    """Return the battle of a row.

    Without a `source`, one that names a `judge_model` is by that, any other by people. A `pref` is
    how probably b is better.

    Raises:
        InvalidFields: A column is missing or says something else.
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
    """Return how much a battle counts, 1 where nothing is said.

    Raises:
        InvalidFields: It is no number above 0.
    """
    given = optional_number(fields, "weight")
    if given is not None and given <= 0:
        raise InvalidFields(f"weight is {given!r}, and must be above 0")
    return 1.0 if given is None else given


def _battles(fields: Fields) -> Iterator[BattleRow]:
    yield battle(fields)


read = row_by_row(_battles)
