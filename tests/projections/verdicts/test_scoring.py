"""Answers put to a judge, and the scores in its replies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registration import ScoreScale
from projections.verdicts.queries import ScoreQuery
from projections.verdicts.scoring import (
    SCORE_PARSER_OF,
    SCORE_PARSERS,
    parse_json_score,
    parse_score,
    score_query,
)
from tests.support.builders.events import judge, rubric
from tests.support.builders.scores import JUDGE, PASSES, QUESTION, TEN, scoring_rubric
from tests.support.patience import at_once


def asked(answer: str = "Aspirin.", scale: ScoreScale = TEN, **how: str) -> ScoreQuery:
    """Return the query about an answer."""
    by = judge("ann", parameters=tuple(how.items())) if how else JUDGE
    return score_query(by, scoring_rubric(scale), QUESTION, answer)


def test_a_query_has_the_rubric_the_question_and_both_answers() -> None:
    """The system text is the rubric's; the rest stands between fences with one token."""
    query = asked()

    token = query.user.partition("\n")[0].rpartition(" ")[2]
    assert query.system.endswith("The rubric:\n\nJudge recall.\n")
    assert "SCORE: N\nwhere N is a number from 1 to 10" in query.system
    for name, text in (
        ("question", "What helps?"),
        ("reference answer", "aspirin"),
        ("answer", "Aspirin."),
    ):
        assert f"<<< {name} {token}\n{text}\n>>> end of {name} {token}" in query.user
    assert query.user.endswith("end with the line SCORE: a number from 1 to 10.")


def test_a_rubric_may_do_without_the_expected_answer() -> None:
    """Then the judge does not see it."""
    query = score_query(JUDGE, scoring_rubric(needs_gold=False), QUESTION, "Aspirin.")

    assert query.gold_answer is None
    assert query.n_verdicts == 1
    assert "reference answer" not in query.user


def test_an_answer_passes_or_fails_where_the_rubric_says_so() -> None:
    """In both protocols."""
    assert "SCORE: PASS\nor\nSCORE: FAIL\n" in asked(scale=PASSES).system
    assert 'your "score": PASS or FAIL.' in asked(scale=PASSES, protocol="schema").system


def test_the_schema_of_a_reply_follows_the_scale() -> None:
    """A number, or one of two words; a server cannot enforce limits."""
    number, word = asked().reply_schema, asked(scale=PASSES).reply_schema

    assert number["properties"] == {"reasoning": {"type": "string"}, "score": {"type": "number"}}
    assert word["required"] == ["reasoning", "score"]
    assert str(word["properties"]).endswith("'enum': ['PASS', 'FAIL']}}")


def test_a_key_is_that_of_the_whole_request() -> None:
    """Whatever the judge is shown is asked again if it changes, and nothing else is."""
    keys = {
        asked().query_key,
        asked("Ibuprofen.").query_key,
        asked(scale=PASSES).query_key,
        asked(protocol="schema").query_key,
        score_query(JUDGE, scoring_rubric(), replace(QUESTION, expected="x"), "Aspirin.").query_key,
    }

    assert len(keys) == 5
    assert asked().query_key == asked().query_key


def test_a_rubric_without_a_scale_scores_nothing() -> None:
    """It compares."""
    with pytest.raises(ValueError, match="rubric 'factuality' gives no score"):
        score_query(JUDGE, rubric(), QUESTION, "Aspirin.")


@given(answer=st.text(), question=st.text())
def test_no_answer_closes_its_fence(answer: str, question: str) -> None:
    """Its token is a digest of the texts, so none of them can know it."""
    query = score_query(JUDGE, scoring_rubric(), replace(QUESTION, prompt=question), answer)

    token = query.user.partition("\n")[0].rpartition(" ")[2]
    assert query.user.count(token) == 6


@pytest.mark.parametrize(
    ("reply", "points"),
    [
        ("Fine.\nSCORE: 7", 7.0),
        ("SCORE: 7.5", 7.5),
        ("**Score: 10.**", 10.0),
        ("SCORE: [8]\n", 8.0),
        ("SCORE: 8/10", 8.0),
        ("SCORE: 8 / 10", 8.0),
        ("SCORE: 8/100", None),
        ("SCORE: 0", None),
        ("SCORE: 11", None),
        ("SCORE: PASS", None),
        ("SCORE: seven", None),
        ("SCORE: 7\nor so", None),
        ("", None),
        ("SCORE: 7\nSCORE: 7.0", 7.0),
        ("SCORE: [[7]]", 7.0),
        ("```\nSCORE: 7\n```", 7.0),
        ("SCORE\uff1a7\u3002", 7.0),
        ("SCORE: 7<|im_end|>", 7.0),
        (r"SCORE: $\boxed{7}$", 7.0),
        ("<think>SCORE: 1</think>\nSCORE: 7/10", 7.0),
        ("SCORE: 1\nSCORE: 7", None),
        ("SCORE: 70\nSCORE: 7", None),
        ("<think>\nSCORE: 7", None),
        ("SCORE: -3", None),
        ("SCORE: \u22123", None),
    ],
)
def test_a_score_is_read_in_the_last_line(reply: str, points: float | None) -> None:
    """What is not on the scale is no score."""
    assert parse_score(reply, TEN) == points


@pytest.mark.parametrize(
    ("reply", "points"),
    [("SCORE: pass", 1.0), ("> SCORE: FAIL.", 0.0), ("SCORE: 1", None), ("SCORE: PASS/1", None)],
)
def test_an_answer_that_passes_is_worth_one(reply: str, points: float | None) -> None:
    """One that fails, nothing."""
    assert parse_score(reply, PASSES) == points


@pytest.mark.parametrize(
    ("reply", "scale", "points"),
    [
        ('{"reasoning": "x", "score": 7}', TEN, 7.0),
        ('```json\n{"score": 2.5}\n```', TEN, 2.5),
        ('{"score": true}', TEN, None),
        ('{"score": "7"}', TEN, None),
        ('{"score": NaN}', TEN, None),
        ('{"score": 70}', TEN, None),
        ('{"score": "Pass"}', PASSES, 1.0),
        ('{"score": 1}', PASSES, None),
        ("[7]", TEN, None),
        ("SCORE: 7", TEN, None),
        ('Good.\n```json\n{"score": 7}\n```\nThat is all.', TEN, 7.0),
        ('<think>{"score": 1}</think>{"score": 7}', TEN, 7.0),
        ('{"score": " pass "}', PASSES, 1.0),
        ('{"score": 1}{"score": 7}', TEN, None),
        ('SCORE: 1\n{"score": 7}', TEN, None),
        ('{"score": 1, "score": 7}', TEN, None),
        ('{"score": 7, "p": NaN}', TEN, 7.0),
    ],
)
def test_a_score_is_read_from_an_object(
    reply: str, scale: ScoreScale, points: float | None
) -> None:
    """Its shape is guaranteed by the server at best, its value never."""
    assert parse_json_score(reply, scale) == points


def test_every_protocol_has_a_parser() -> None:
    """A stored score names it, and is checked by it for ever."""
    assert dict(SCORE_PARSER_OF) == {"line": "score-line@2", "schema": "json-score@2"}
    assert {*SCORE_PARSERS} == {"score-line@1", "score-line@2", "json-score@1", "json-score@2"}


@pytest.mark.parametrize(
    ("parser", "reply", "scale", "points"),
    [
        ("score-line@1", "SCORE: 1\nSCORE: [7].", TEN, 7.0),
        ("score-line@1", "SCORE: [[7]]", TEN, None),
        ("json-score@1", '```\n{"score": 1, "score": 7}\n```', TEN, 7.0),
        ("json-score@1", 'So: {"score": 7}', TEN, None),
        ("json-score@1", '{"score": "fail"}', PASSES, 0.0),
        ("json-score@1", '{"score": "fail "}', PASSES, None),
        ("json-score@1", '{"score": 0}', PASSES, None),
    ],
)
def test_a_score_on_record_stays_as_its_own_rule_read_it(
    parser: str, reply: str, scale: ScoreScale, points: float | None
) -> None:
    """Else an audit would accuse ledgers that were right when they were written."""
    assert SCORE_PARSERS[parser](reply, scale) == points


@pytest.mark.parametrize(
    "text", ["*" * 100_000, "SCORE: " + "1" * 100_000, "SCORE: " + " " * 100_000]
)
def test_long_replies_are_read_at_once(text: str) -> None:
    """A judge that repeats itself must not stop the tournament."""
    with at_once():
        assert parse_score(text, TEN) is None
