"""Reading a judge's marks for both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import Verdict
from projections.verdicts.parsers import JudgeScores, parse_judge_scores, parse_score_verdict
from tests.support.patience import at_once

READ: list[tuple[str, JudgeScores]] = [
    ("score_A: 7\nscore_B: 9", JudgeScores(7, 9)),
    ("score_A: 8.5\nscore_B: 9/10", JudgeScores(8, 9)),
    ("Score of Assistant A: 0\nScore of Assistant B: 10", JudgeScores(0, 10)),
    ("**score_A**: 7\n**score_B**: 6", JudgeScores(7, 6)),
    ("Scores: A 7 B 9", JudgeScores(7, 9)),
    ('{"score_a": 3, "score_b": -1}', JudgeScores(3, -1)),
    ("score_A:\n\n  4\nscore_B:\n5", JudgeScores(4, 5)),
    ("score_B: 1\nscore_A: 2", JudgeScores(2, 1)),
    ("SCORE_A: 1\nSCORE_B: 1\nscore_A: 9", JudgeScores(1, 1)),
    ("What a score: both at least 5.\nscore_A: 6\nscore_B: 5", JudgeScores(6, 5)),
    ("score_A: \u0667\nscore_B: 9", JudgeScores(7, 9)),
]
UNREADABLE = [
    "",
    "score_A: 7",
    "score_B: 7",
    "score_A = 7\nscore_B = 9",
    "score_A: <8>\nscore_B: <9>",
    "score_A: seven\nscore_B: nine",
    "A: 7\nB: 9",
    "score\nA: 7 B: 9",
    "\u017fcore_A: 7\n\u017fcore_B: 9",
    f"score_A: {'9' * 5000}\nscore_B: 9",
]
THOUGHTS: list[tuple[str, JudgeScores | None]] = [
    ("<think>score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", JudgeScores(3, 4)),
    ("score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", JudgeScores(3, 4)),
    ("score_A: 5 <think>score_A: 1</think> score_B: 6 <think></think>", JudgeScores(5, 6)),
    ("<think>a</think>score_A: 1 score_B: 2</think>score_A: 3 score_B: 4", JudgeScores(3, 4)),
    ("<think>score_A: 1 score_B: 2</think>", None),
    ("<think>score_A: 1 score_B: 2", JudgeScores(1, 2)),
]
LONG = [
    "score" * 20_000,
    "score a " * 15_000,
    "score " + "a " * 50_000,
    "score a" + "\n" * 100_000,
    "score a:\n" * 10_000,
    "<think>" * 15_000,
    "</think>" * 12_000,
]


@pytest.mark.parametrize(("reply", "marks"), READ)
def test_the_first_mark_of_either_side_is_read(reply: str, marks: JudgeScores) -> None:
    """Replies judged elsewhere are to make the outcomes that they made there."""
    assert parse_judge_scores(reply) == marks


@pytest.mark.parametrize("reply", UNREADABLE)
def test_without_both_marks_there_is_no_verdict(reply: str) -> None:
    """One mark says nothing of which side is better, and no tie may be made of that."""
    assert parse_judge_scores(reply) is None
    assert parse_score_verdict(reply) is None


@pytest.mark.parametrize(("reply", "marks"), THOUGHTS)
def test_what_a_judge_thought_does_not_count(reply: str, marks: JudgeScores | None) -> None:
    """It weighs marks there that it does not give in the end; its template may eat the tag."""
    assert parse_judge_scores(reply) == marks


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("score_A: 7\nscore_B: 9", "B"),
        ("score_A: 10\nscore_B: 9", "A"),
        ("score_A: 8.9\nscore_B: 8", "TIE"),
    ],
)
def test_the_higher_mark_wins(reply: str, verdict: Verdict) -> None:
    """Hard outcomes come of the same replies as soft ones."""
    assert parse_score_verdict(reply) == verdict


@given(
    reasoning=st.text().filter(lambda text: "score" not in text.lower()),
    a=st.integers(-(10**9), 10**9),
    b=st.integers(-(10**9), 10**9),
)
def test_marks_are_read_after_any_reasoning(reasoning: str, a: int, b: int) -> None:
    """A judge may say what it likes, short of the word, before it comes to its marks."""
    assert parse_judge_scores(f"{reasoning}\nscore_A: {a}\nscore_B: {b}") == JudgeScores(a, b)


@given(
    reply=st.text() | st.lists(st.sampled_from(["score", "A", "b", ":", "\n", "7"])).map("".join)
)
def test_no_marks_can_raise_an_error(reply: str) -> None:
    """Replies are recorded as they come: an error here would lose one that was paid for."""
    assert parse_score_verdict(reply) in {"A", "B", "TIE", None}


@pytest.mark.parametrize("reply", LONG, ids=range(len(LONG)))
def test_a_long_reply_without_marks_is_given_up_at_once(reply: str) -> None:
    """A judge that loops fills its whole reply, and must not stop the run."""
    with at_once():
        marks = parse_judge_scores(reply)

    assert marks is None
