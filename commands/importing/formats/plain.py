"""The plain format: one battle per row, in columns that are easy to write by hand or program."""

from collections.abc import Iterator, Mapping
from typing import Final, get_args

from commands.importing.formats.rows import (
    BattleRow,
    Cells,
    Fields,
    InvalidFields,
    row_by_row,
)
from ledger.events.imports import Source, Winner

_WINNERS: tuple[Winner, ...] = get_args(Winner)
_SOURCES: tuple[Source, ...] = get_args(Source)

NEEDED: Final[Mapping[str, str]] = {
    "model_a": "an entrant",
    "model_b": "another",
    "winner": " | ".join(_WINNERS),
}
"""The required columns, and what each holds."""

OPTIONAL: Final[Mapping[str, str]] = {
    "pref": "probability that model_b is better, from 0 to 1",
    "question_id": "id of the prompt",
    "source": f"{' | '.join(_SOURCES)}; default: human if there is no judge_model",
    "judge_model": "the judge",
    "weight": "weight of the battle, above 0; default: 1",
}
"""The optional columns, and what each holds; their cells may be empty."""

COLUMNS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("model_a", "model_b", "winner"), str),
    "pref": float,
    **dict.fromkeys(("question_id", "source", "judge_model"), str),
    "weight": float,
}
"""All columns, with the type of their cells in a file that has types."""


def battle(cells: Cells) -> BattleRow:
    """Return the battle of a row.

    Without a `source`, a battle with a `judge_model` is a judge's, any other is people's.

    Raises:
        InvalidFields: A column is missing or wrong.
    """
    judge_model = cells.optional_text("judge_model")
    by_default: Source = "human" if judge_model is None else "llm-judge"
    is_said = not cells.lacks("source")
    return BattleRow(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=cells.one_of("winner", _WINNERS),
        pref=cells.optional_share("pref"),
        question_id=cells.optional_text("question_id"),
        source=cells.one_of("source", _SOURCES) if is_said else by_default,
        judge_model=judge_model,
        weight=_weight(cells),
    )


def _weight(cells: Cells) -> float:
    given = cells.optional_number("weight")
    if given is not None and given <= 0:
        raise InvalidFields(f"weight is {given!r}, but must be above 0")
    return 1.0 if given is None else given


def row_of(record: Fields) -> Fields:
    """Return an exported battle as a row of a plain table.

    JudgeArena's shape has a tie without a preference where a judge's reply was unreadable; a table,
    where a missing preference is an empty cell, says so in words.
    """
    is_unread = "pref" in record and record["pref"] is None
    return {**record, "winner": "no verdict"} if is_unread else record


@row_by_row
def read(cells: Cells) -> Iterator[BattleRow]:
    """Yield the battle of a row."""
    yield battle(cells)
