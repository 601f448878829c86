"""FastChat's pairwise judgments of MT-bench."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.formats.rows import Fields
from ledger.events.imports import ImportedBattle
from tests.support.builders.formats import battles_of_rows, read_text, why_not

_PAIRS = """\
{"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "model_2", \
"g2_winner": "model_1", "judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "?", \
"g1_judgment": "[[B]]", "g2_user_prompt": "?", "g2_judgment": "[[B]]", "turn": 1, "tstamp": 1.5}
{"question_id": 81, "model_1": "alpaca-13b", "model_2": "gpt-4", "g1_winner": "error", \
"g2_winner": "tie", "judge": ["gpt-4", "pair-v2-multi-turn"], "g1_user_prompt": "?", \
"g1_judgment": "$ERROR$", "g2_user_prompt": "?", "g2_judgment": "[[C]]", "turn": 2, "tstamp": 2.5}
"""
_WINNERS = ["model_1", "model_2", "tie", "error"]


def row(**fields: object) -> Fields:
    """Return a pair, of which both games were tied."""
    pair = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["gpt-4", "pair-v2"]}
    return pair | {"g1_winner": "tie", "g2_winner": "tie"} | fields


def other_number(winner: str) -> str:
    """Return what a winner is called where the models are numbered the other way."""
    return {"model_1": "model_2", "model_2": "model_1"}.get(winner, winner)


def test_each_game_is_a_battle_in_the_order_that_was_shown(tmp_path: Path) -> None:
    """This judge chose slot B twice; merging the games to a tie first would hide it."""
    read = read_text("mt-bench", tmp_path / "gpt-4_pair.jsonl", _PAIRS)

    first = ImportedBattle("alpaca-13b", "gpt-4", "model_b", None, "81", "llm-judge", "gpt-4")
    second = ImportedBattle("gpt-4", "alpaca-13b", "model_b", None, "81", "llm-judge", "gpt-4")
    assert read[:2] == [first, second]
    assert read[2:] == [first._replace(winner="no verdict"), second._replace(winner="tie")]


@given(st.sampled_from(_WINNERS), st.sampled_from(_WINNERS))
def test_numbering_the_models_the_other_way_changes_no_battle(first: str, second: str) -> None:
    """Who is model_1 decides only which game comes first."""
    read = battles_of_rows("mt-bench", row(g1_winner=first, g2_winner=second))
    renumbered = row(
        model_1="y",
        model_2="x",
        g1_winner=other_number(second),
        g2_winner=other_number(first),
    )

    assert battles_of_rows("mt-bench", renumbered) == read[::-1]


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (row(g2_winner="x"), "g2_winner is 'x', but must be one of model_2, model_1, tie, error"),
        (row(judge=["gpt-4"]), "judge is ['gpt-4'], but must be [model, prompt]"),
        (row(judge=["", "pair-v2"]), "judge is ['', 'pair-v2'], but must be [model, prompt]"),
        (row(judge="gpt-4"), "judge: must be a list, not a text"),
        (row(question_id=None), "question_id is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_pair_is_told(pair: Fields, why: str) -> None:
    """A winner by its name, say, as other programs write it."""
    assert why_not("mt-bench", pair) == why
