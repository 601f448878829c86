"""LMArena's votes: what people preferred of two anonymous models, in its three public layouts.

Conversations of any length are imported; JudgeArena rates those of one turn only.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.rows import BattleRow, Cells, InvalidFields, row_by_row, shorten
from ledger.events.imports import Winner

_FLAGS: Final[Mapping[str, Winner]] = {
    "winner_model_a": "model_a",
    "winner_model_b": "model_b",
    "winner_tie": "tie",
}
_WINNERS: Final[Mapping[str, Winner]] = {
    "model_a": "model_a",
    "model_b": "model_b",
    "tie": "tie",
    "tie (bothbad)": "tie (bothbad)",  # arena-human-preference-100k
    "both_bad": "tie (bothbad)",  # arena-human-preference-140k
}


@row_by_row
def read_55k(cells: Cells) -> Iterator[BattleRow]:
    yield _vote(cells, _flagged(cells), question_id="id")


@row_by_row
def read_100k(cells: Cells) -> Iterator[BattleRow]:
    yield _vote(cells, cells.mapped_value("winner", _WINNERS), question_id="question_id")


@row_by_row
def read_140k(cells: Cells) -> Iterator[BattleRow]:
    yield _vote(cells, cells.mapped_value("winner", _WINNERS), question_id="id")


def _vote(cells: Cells, winner: Winner, *, question_id: str) -> BattleRow:
    return BattleRow(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=winner,
        pref=None,
        question_id=cells.text(question_id),
        source="human",
        judge_model=None,
    )


def _flagged(cells: Cells) -> Winner:
    """Return the winner whose flag is 1; a tie may mean that both were bad."""
    flags = {name: cells.optional_number(name) for name in _FLAGS}
    if sorted(flag for flag in flags.values() if flag is not None) != [0, 0, 1]:
        said = ", ".join(f"{name} {shorten(cells.fields.get(name))}" for name in _FLAGS)
        raise InvalidFields(f"{said}: one must be 1, the others 0")
    return next(winner for name, winner in _FLAGS.items() if flags[name])
