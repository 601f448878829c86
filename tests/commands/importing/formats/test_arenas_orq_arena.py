"""orq-arena's battle log."""

from pathlib import Path

import pytest

from commands.importing.formats.rows import Fields
from ledger.events.imports import ImportedBattle, JurorSaid, JurorVote, Winner
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
    votes = (JurorVote("anthropic/haiku", "model_b"), JurorVote("google/lite", "inconsistent"))
    decided = ImportedBattle("mini", "pro", "model_b", None, "b6a6", "llm-judge", jury, votes=votes)
    assert read == [decided, decided._replace(winner="no verdict", judge_model=None, votes=())]


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

    votes = (JurorVote("j1", "no verdict"), JurorVote("j2", "no verdict"))
    expected = ImportedBattle("mini", "pro", meaning, None, "b6a6", "llm-judge", "j1+j2")
    assert battle == expected._replace(votes=votes)


@pytest.mark.parametrize(
    ("vote", "said"),
    [
        ({"vote": "A", "flipped": False}, "model_a"),
        ({"vote": "B"}, "model_b"),
        ({"vote": "tie"}, "tie"),
        ({"vote": None, "flipped": True}, "inconsistent"),
        ({"vote": None, "completed": False}, "no verdict"),
    ],
)
def test_each_jurors_vote_is_kept(vote: Fields, said: JurorSaid) -> None:
    """So that kappa can be computed; one that flipped is told from one that failed."""
    (battle,) = battles_of_rows("orq-arena", row(judge_votes=[{"model": "j1", **vote}]))

    assert battle.votes == (JurorVote("j1", said),)


def test_the_category_and_the_length_of_both_answers_are_kept() -> None:
    """In characters, which orq-arena compares answers by; the texts are left out."""
    texts = {"response_a": "no", "response_b": "h\u00e9 oui", "prompt_category": "coding"}

    (battle,) = battles_of_rows("orq-arena", row(**texts))

    assert (battle.length_a, battle.length_b, battle.categories) == (2, 6, ("coding",))


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (row(schema_version=4), "schema_version is 4, but must be 2 or 3"),
        (row(schema_version=None), "schema_version is None, but must be 2 or 3"),
        (row(majority_verdict="A", winner="pro"), "winner is 'pro', but majority_verdict is 'A'"),
        (row(winner="other"), "winner is 'other', but majority_verdict is 'tie'"),
        (row(majority_verdict="AB"), "majority_verdict is 'AB', but must be one of A, B, tie, "),
        (row(judge_votes=None), "judge_votes: must be a list, not null"),
        (row(judge_votes=[{}]), "model is None, but must be a text"),
        (row(judge_votes=[{"model": "j", "vote": "C"}]), "vote is 'C', but must be one of A, B, "),
    ],
)
def test_a_row_that_is_no_round_is_told(log: Fields, why: str) -> None:
    """A winner beside another verdict, say, or a schema that may mean something else."""
    assert why_not("orq-arena", log).startswith(why)
