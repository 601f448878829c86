"""The records of a run: matches, verdicts, battles."""

from msgspec import structs

from ledger.events.judging import PairReconciled, VerdictReceived
from ledger.events.values import Usage
from projections.artifacts.files import battles, matches, verdicts
from projections.artifacts.results import Results
from projections.verdicts.policies import DEFAULT_POLICY
from tests.builders import known, opened, prompt, responses
from tests.projections.worlds import RUBRICS, cup, history, matches_of, results

PAIR = {
    "prompt_id",
    "source",
    "prompt_text",
    "entrant_a",
    "entrant_b",
    "response_a",
    "response_b",
    "gold_answer",
    "expected_behavior",
}
JUDGMENT = {
    "cache_key",
    "pair",
    "rubric_version",
    "judge_model",
    "position_swap",
    "verdict",
    "reasoning",
    "timestamp",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
}


def judged(found: Results) -> list[dict[str, object]]:
    """Return the verdicts of the first dimension."""
    (settlements, *_) = found.settlements.values()
    return [dict(row) for row in verdicts(found, settlements)]


def test_matches_are_in_the_order_of_the_match_list() -> None:
    """Prompts, then dimensions, then pairs: line n of the customer's file is line n here."""
    prompts = [prompt("p2"), prompt("p1", gold=None), prompt("p3")]

    rows = list(matches(results(*history(opened(rubrics=RUBRICS, prompts=prompts)))))

    assert [(row["prompt_id"], row["dimension"]) for row in rows] == [
        ("p2", "factuality"),
        ("p2", "utility"),
        ("p1", "utility"),
        ("p3", "factuality"),
        ("p3", "utility"),
    ]


def test_a_match_has_the_fields_of_the_customers() -> None:
    """The pair as it was judged, with both responses whole and what the judge could know."""
    tagged = prompt(expected_behavior="hedge", source="curated")

    (row,) = matches(results(*history(opened(prompts=[tagged]))))

    assert row == {
        "dimension": "factuality",
        "prompt_id": "p1",
        "source": "curated",
        "prompt_text": "Question p1?",
        "entrant_a": "base",
        "entrant_b": "tuned",
        "response_a": "base on p1",
        "response_b": "tuned on p1",
        "gold_answer": "aspirin",
        "expected_behavior": "hedge",
    }


def test_a_pairing_without_a_response_is_no_match() -> None:
    """The file holds what could be judged; the account counts the rest."""
    *said, _ = responses(known(*cup()))  # kim's second is missing

    rows = list(matches(results(*cup(), *said)))

    assert [row["prompt_id"] for row in rows] == ["p1", "p1", "p1", "p2"]


def test_a_judgment_has_the_fields_of_the_customers() -> None:
    """Scripts that read the customer's verdicts read these as well."""
    (row,) = judged(results(*history(opened(), "b")))

    raw = row.pop("raw")
    assert row == {
        "prompt_id": "p1",
        "dimension": "factuality",
        "entrant_a": "base",
        "entrant_b": "tuned",
        "winner": "tuned",
        "inconsistent": False,
        "outcome": "b",
    }
    assert isinstance(raw, list)
    assert all(set(each) >= JUDGMENT and set(each["pair"]) == PAIR for each in raw)


def test_both_replies_are_kept_whole_and_in_order() -> None:
    """Who doubts an outcome reads what the judge said, forward first."""
    (row,) = judged(results(*history(opened(), "a")))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert [
        (each["position_swap"], each["verdict"], each["reasoning"], each["parser"]) for each in raw
    ] == [(False, "A", "VERDICT: A", "final-line@1"), (True, "B", "VERDICT: B", "final-line@1")]
    assert raw[0]["pair"] == raw[1]["pair"]
    assert raw[0]["cache_key"] != raw[1]["cache_key"]


def test_what_no_judge_counted_is_null() -> None:
    """Zero tokens would claim that a query was free."""
    (row,) = judged(results(*history(opened(), "a")))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert {each["input_tokens"] for each in raw} == {None}
    assert {(each["stop_reason"], each["timestamp"][:10]) for each in raw} == {
        ("end_turn", "2026-04-27")
    }


def test_only_reconciled_pairs_are_among_the_verdicts() -> None:
    """A failure has no verdict to show, and must not be shown as a tie."""
    found = results(*history(cup(), "a", "tie", "inconsistent", "refused", "pending"))

    rows = [(row["winner"], row["inconsistent"], row["outcome"]) for row in judged(found)]

    assert rows == [
        ("zoe", False, "a"),
        (None, False, "tie"),
        (None, True, "inconsistent"),
    ]


def test_battles_are_what_was_won_or_tied() -> None:
    """JudgeArena knows three winners; an inconsistent pair is none of them."""
    found = results(*history(cup(), "a", "b", "tie", "inconsistent", "refused", "pending"))

    rows = list(battles(found))

    assert [(row["model_a"], row["model_b"], row["winner"]) for row in rows] == [
        ("zoe", "amy", "model_a"),
        ("zoe", "kim", "model_b"),
        ("amy", "kim", "tie"),
    ]
    assert rows[0] == {
        "model_a": "zoe",
        "model_b": "amy",
        "winner": "model_a",
        "pref": 0.0,
        "source": "llm-judge",
        "question_id": "p1",
        "judge_model": "chrF2",
        "dimension": "factuality",
    }


def test_the_tokens_of_a_reply_are_in_the_customers_fields() -> None:
    """What was written to a cache for five minutes or an hour is one number there."""
    usage = Usage(n_input=5, n_output=7, n_cache_write_5m=11, n_cache_write_1h=13, n_cache_read=17)
    counted = [
        structs.replace(event, usage=usage) if isinstance(event, VerdictReceived) else event
        for event in history(opened(), "a")
    ]

    (row,) = judged(results(*counted))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert {
        (
            each["input_tokens"],
            each["output_tokens"],
            each["cache_creation_input_tokens"],
            each["cache_read_input_tokens"],
        )
        for each in raw
    } == {(5, 7, 24, 17)}


def test_identical_responses_that_tied_unasked_have_no_replies() -> None:
    """A row without replies says why it has none."""
    answered = (
        *opened(),
        *responses(known(*opened()), {("base", "p1"): "x", ("tuned", "p1"): "x"}),
    )
    tournament = known(*answered)
    (match,) = matches_of(tournament)
    key = match.key(tournament.panel[0].judge_id, DEFAULT_POLICY)
    tied = PairReconciled(outcome="tie", basis="identical", **key._asdict())

    (row,) = judged(results(*answered, tied))

    assert (row["outcome"], row["raw"], row["basis"]) == ("tie", [], "identical")
