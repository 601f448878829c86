"""Judgments of benchmarks: MT-bench, arena-hard-auto and AlpacaEval.

MT-bench: a row of FastChat's model_judgment/{judge}_pair.jsonl is a pair in both orders; in game 1
model_1 is in slot A, in game 2 model_2 is. Each game becomes a battle in the order shown; FastChat
itself counts two that disagree as a tie. A row of the published votes, by people and by GPT-4, is
one vote with its winner and judge. Both turns of a question are battles on one prompt, since the
second continues the first.

arena-hard-auto, v2.0 and v0.1: a row of model_judgment/{judge}/{model}.jsonl is a prompt on which
the judge compared a model with the benchmark's baseline, once in each order; in the first game the
baseline is in slot A, in the second the model is. Each game becomes a battle in the order shown. A
game without a readable label has no verdict; the scores of v2.0 exclude its prompt, those of v0.1
the game.

AlpacaEval: a preference in annotations.json runs from 1 (`generator_1`) to 2 (`generator_2`), 3/2
for a tie: one more than the probability that the second is better. The first, usually the
reference, becomes model_a. The order in which the annotator saw the two was random, and is not in
the file. The dataset that a prompt comes from becomes its category; of the outputs, the number of
characters is kept.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

from commands.importing.formats.plain import NEEDED, WINNERS, named_judge
from commands.importing.formats.rows import BattleFormat, Cells, Fields, InvalidFields, row_by_row
from ledger.events.imports import ImportedBattle, Winner
from projections.artifacts.judgearena import winner_by

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
def _read_mt_bench(cells: Cells) -> Iterator[ImportedBattle]:
    if "g1_winner" not in cells.fields:
        judge, source = named_judge(cells)
        yield ImportedBattle(
            cells.text("model_a"),
            cells.text("model_b"),
            cells.winner("winner", WINNERS),
            question_id=cells.text("question_id"),
            source=source,
            judge_model=judge,
        )
        return
    model_1, model_2 = cells.text("model_1"), cells.text("model_2")
    game_1 = ImportedBattle(
        model_1,
        model_2,
        cells.winner("g1_winner", _GAME_1),
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


MT_BENCH: Final = BattleFormat(
    "mt-bench",
    _read_mt_bench,
    "FastChat's pairwise model_judgment, and votes on it by people and by GPT-4",
    ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"),
    or_required=("question_id", *NEEDED, "judge"),
    tells=("g1_winner", "turn"),
)

_MUCH: Final = 3.0  # weight of `much better`, as in arena-hard-auto's show_result.py
_BASELINE_V0_1: Final = "gpt-4-0314"  # from its show_result.py; rows of v0.1 do not name it
_LABELS: Final[Mapping[str, tuple[Winner, float]]] = {
    "A>>B": ("model_a", _MUCH),
    "A>B": ("model_a", 1.0),
    "A=B": ("tie", 1.0),
    "A<B": ("model_b", 1.0),
    "A<<B": ("model_b", _MUCH),
    "B>>A": ("model_b", _MUCH),
    "B>A": ("model_b", 1.0),
    "B=A": ("tie", 1.0),
    "B<A": ("model_a", 1.0),
    "B<<A": ("model_a", _MUCH),
}


@row_by_row
def _read_arena_hard(cells: Cells) -> Iterator[ImportedBattle]:
    is_v0_1 = "question_id" in cells.fields and cells.lacks("baseline")
    model, baseline = cells.text("model"), _BASELINE_V0_1 if is_v0_1 else cells.text("baseline")
    games = cells.structured("games", list[dict[str, object] | None])
    orders = ((baseline, model), (model, baseline))
    if len(games) not in {1, len(orders)}:  # v0.1 can play the first game only
        raise InvalidFields(f"there are {len(games)} games; there must be one or two")
    for (first, second), game in zip(orders, games, strict=False):
        winner, weight = _label(game)
        yield ImportedBattle(
            first,
            second,
            winner,
            question_id=cells.text("uid" if "uid" in cells.fields else "question_id"),
            source="llm-judge",
            judge_model=cells.text("judge"),
            weight=weight,
            categories=cells.labels("category"),
        )


def _label(game: Fields | None) -> tuple[Winner, float]:
    """Return who won a game, and its weight; no verdict if the judge failed."""
    if game is None or Cells(game).lacks("score"):
        return "no verdict", 1.0
    return Cells(game).mapped_value("score", _LABELS)


ARENA_HARD: Final = BattleFormat(
    "arena-hard",
    _read_arena_hard,
    "arena-hard-auto's model_judgment, v0.1 and v2.0",
    ("model", "judge", "games"),
    ("uid", "question_id", "baseline", "category"),
)

_TIE_ONCE: Final = 0  # a tie, in AlpacaEval's files from before preferences were weighted
_N_DECIMALS: Final = 15  # of a preference; further ones come from the subtraction
_N_HEX: Final = 16  # of an id, made from a prompt's text: 64 bits tell a million apart


@row_by_row
def _read_alpaca_eval(cells: Cells) -> Iterator[ImportedBattle]:
    pref = _pref(cells)
    yield ImportedBattle(
        cells.text("generator_1"),
        cells.text("generator_2"),
        "no verdict" if pref is None else winner_by(1 - pref),
        pref,
        question_id=sha256(cells.text("instruction").encode()).hexdigest()[:_N_HEX],
        source="llm-judge",
        judge_model=cells.optional_text("annotator"),
        categories=cells.labels("dataset"),
        length_a=cells.length("output_1"),
        length_b=cells.length("output_2"),
    )


def _pref(cells: Cells) -> float | None:
    """Return the probability that the second is better, or None if the annotator failed."""
    if "preference" not in cells.fields:
        raise InvalidFields("preference is missing; it may be null")
    preference = cells.optional_number("preference")
    if preference is None:
        return None
    if preference == _TIE_ONCE:
        return 1 / 2
    if not 1 <= preference <= 2:  # noqa: PLR2004  # the certain preferences
        raise InvalidFields(f"preference is {preference!r}, but must be from 1 to 2")
    return round(preference - 1, _N_DECIMALS)


ALPACA_EVAL: Final = BattleFormat(
    "alpaca-eval",
    _read_alpaca_eval,
    "AlpacaEval's annotations.json",
    ("instruction", "generator_1", "generator_2", "preference"),
    ("annotator", "dataset", "output_1", "output_2"),
)
