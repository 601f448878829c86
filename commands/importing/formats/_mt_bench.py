"""MT-bench's pairwise judgments: FastChat's model_judgment/{judge}_pair.jsonl, and published votes.

A row of the first is a pair in both orders: in game 1 model_1 is in slot A, in game 2 model_2 is.
Each game becomes a battle in the order shown; FastChat itself counts two that disagree as a tie. A
row of the published votes, by people and by GPT-4, is one vote with its winner and judge. Both
turns of a question are battles on one prompt, since the second continues the first.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.plain import WINNERS, named_judge
from commands.importing.formats.rows import Cells, InvalidFields, row_by_row
from ledger.events.imports import ImportedBattle, Winner

_GAME_1: Final[Mapping[str, Winner]] = {
    "model_1": "model_a",
    "model_2": "model_b",
    "tie": "tie",
    "error": "no verdict",
}
_GAME_2: Final[Mapping[str, Winner]] = {
    "model_2": "model_a",
    "model_1": "model_b",
    "tie": "tie",
    "error": "no verdict",
}


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    yield from _games(cells) if "g1_winner" in cells.fields else [_vote(cells)]


def _vote(cells: Cells) -> ImportedBattle:
    judge, source = named_judge(cells)
    return ImportedBattle(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=cells.winner("winner", WINNERS),
        pref=None,
        question_id=cells.text("question_id"),
        source=source,
        judge_model=judge,
    )


def _games(cells: Cells) -> Iterator[ImportedBattle]:
    model_1, model_2 = cells.text("model_1"), cells.text("model_2")
    game_1 = ImportedBattle(
        model_a=model_1,
        model_b=model_2,
        winner=cells.winner("g1_winner", _GAME_1),
        pref=None,
        question_id=cells.text("question_id"),
        source="llm-judge",
        judge_model=_judge_model(cells),
    )
    winner = cells.winner("g2_winner", _GAME_2)
    yield from (game_1, game_1._replace(model_a=model_2, model_b=model_1, winner=winner))


def _judge_model(cells: Cells) -> str:
    """Return the judge's model, without the name of its prompt."""
    match cells.structured("judge", list[str]):
        case [model, _] if model:
            return model
        case judge:
            raise InvalidFields(f"judge is {judge!r}, but must be [model, prompt]")
