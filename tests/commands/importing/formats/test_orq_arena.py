"""orq-arena's battle log."""

from pathlib import Path

import pytest

from commands.importing.formats.rows import BattleRow, Fields
from ledger.events.imports import Winner
from tests.support.builders.formats import battles_of_rows, read_text, why_not

_LOG = """\
{"schema_version": 2, "prompt_hash": "b6a6", "prompt_text": "?", "model_a": "mini", \
"model_b": "pro", "judge_votes": [{"model": "anthropic/haiku", "vote": "B", "flipped": false, \
"completed": true, "replacement": false, "explanation": ""}, {"model": "google/lite", "vote": \
null, "flipped": true, "completed": true}], "majority_verdict": "B", "winner": "pro", \
"damage_dealt": 20, "hp_a_before": 100, "hp_a_after": 80, "error": null}
{"schema_version": 3, "prompt_hash": "b6a6", "prompt_text": "?", "prompt_metadata": {"l": "x"}, \
"model_a": "mini", "model_b": "pro", "judge_votes": [], "majority_verdict": "inconclusive", \
"winner": "void", "error": "stream failed twice", "round_number": 2}
"""


def row(**fields: object) -> Fields:
    """Return a round that was tied."""
    return {
        "schema_version": 3,
        "prompt_hash": "b6a6",
        "model_a": "mini",
        "model_b": "pro",
        "judge_votes": [{"model": "j1"}, {"model": "j2"}],
        "majority_verdict": "tie",
        "winner": "tie",
    } | fields


def test_both_schemas_are_read_and_a_void_round_has_no_verdict(tmp_path: Path) -> None:
    """A stream that failed says nothing of the models, and nobody judged it."""
    read = read_text("orq-arena", tmp_path / "battles.jsonl", _LOG)

    jury = "anthropic/haiku+google/lite"
    decided = BattleRow("mini", "pro", "model_b", None, "b6a6", "llm-judge", jury)
    assert read == [decided, decided._replace(winner="no verdict", judge_model=None)]


@pytest.mark.parametrize(
    ("verdict", "winner", "meaning"),
    [
        ("A", "mini", "model_a"),
        ("B", "pro", "model_b"),
        ("tie", "tie", "tie"),
        ("inconclusive", "inconclusive", "no verdict"),
        ("inconclusive", "void", "no verdict"),
    ],
)
def test_the_jurys_majority_decides(verdict: str, winner: str, meaning: Winner) -> None:
    """A jury that could not decide has not found the two equal."""
    (battle,) = battles_of_rows("orq-arena", row(majority_verdict=verdict, winner=winner))

    assert battle == BattleRow("mini", "pro", meaning, None, "b6a6", "llm-judge", "j1+j2")


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (row(schema_version=4), "schema_version is 4, but must be 2 or 3"),
        (row(schema_version=None), "schema_version is None, but must be 2 or 3"),
        (row(majority_verdict="A", winner="pro"), "winner is 'pro', but majority_verdict is 'A'"),
        (row(winner="other"), "winner is 'other', but majority_verdict is 'tie'"),
        (row(majority_verdict="AB"), "majority_verdict is 'AB', but must be one of A, B, tie, "),
        (row(judge_votes=None), "judge_votes: Expected array, got null"),
        (row(judge_votes=[{}]), "model is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_round_is_told(log: Fields, why: str) -> None:
    """A winner beside another verdict, say, or a schema that may mean something else."""
    assert why_not("orq-arena", log).startswith(why)
