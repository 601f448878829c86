"""What names a query, a verdict, a failure, an outcome, a batch and each step of it."""

import pytest

from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    batch_key,
    query_key,
)
from ledger.identity import (
    Dimension,
    EntrantId,
    JudgeId,
    PromptId,
    StreamId,
    digest_of,
    digest_of_bytes,
)
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.events import STREAM, key, verdict

BASE, TUNED = EntrantId("base"), EntrantId("tuned")
STYLE = Dimension("style")
P1 = PromptId("p1")
REFERENCE = JudgeId("reference")


def submitted(attempt: int) -> JudgeQuerySubmitted:
    """Return a query put to a judge once more."""
    return JudgeQuerySubmitted(
        query_key=key("query"),
        judge=REFERENCE,
        dimension=STYLE,
        prompt_id=P1,
        entrant_a=BASE,
        entrant_b=TUNED,
        order="forward",
        rubric_digest=key("rubric"),
        response_a=key("a"),
        response_b=key("b"),
        attempt=attempt,
    )


def failed(attempt: int) -> JudgeQueryFailed:
    """Return the failure of an attempt."""
    return JudgeQueryFailed(
        query_key=key("query"),
        judge=REFERENCE,
        attempt=attempt,
        reason="refused",
        reply="",
        parser="final-line@1",
        stop_reason="refusal",
        model="chrF2",
    )


def test_a_query_key_is_the_digest_of_the_whole_request() -> None:
    """Pinned: a resumed run must not ask, and pay, again."""
    named = query_key(key("judge"), key("Compare."), "A: yes\nB: no")

    whole = key("judge") + key("Compare.") + "A: yes\nB: no"
    assert named == digest_of_bytes(whole.encode())


@pytest.mark.parametrize(
    "other",
    [
        query_key(key("other"), key("Compare."), "A: yes"),
        query_key(key("judge"), key("Compare!"), "A: yes"),
        query_key(key("judge"), key("Compare."), "A: no"),
        query_key(key("judge"), key("Compare.A"), ": yes"),
    ],
)
def test_whatever_a_judge_sees_is_in_the_query_key(other: str) -> None:
    """A key too coarse would take one question's verdict for another's."""
    named = query_key(key("judge"), key("Compare."), "A: yes")

    assert other != named


def test_each_attempt_at_a_query_is_a_fact_of_its_own() -> None:
    """After a failure the same question may be put again; the first try still happened."""
    keys = [event.natural_key for event in (submitted(1), submitted(2), failed(1), failed(2))]

    assert keys == [(key("query"), "1"), (key("query"), "2")] * 2


def test_a_query_has_one_verdict_whoever_gives_it() -> None:
    """A second verdict on one query is a conflict, not a vote."""
    first = verdict(key("query"), "A")

    second = verdict(key("query"), "B", by="another")

    assert first.natural_key == second.natural_key == (key("query"),)


def test_an_outcome_is_known_by_its_two_questions() -> None:
    """Judged again after a correction, a pair has a second outcome beside the first."""
    event = PairReconciled(
        dimension=STYLE,
        prompt_id=P1,
        entrant_a=BASE,
        entrant_b=TUNED,
        judge=REFERENCE,
        policy="agreement@1",
        outcome="tie",
        forward=key("forward"),
        swapped=key("swapped"),
    )

    named = event.natural_key

    assert tuple(named) == (
        *("style", "p1", "base", "tuned", "reference", "agreement@1"),
        *(key("forward"), key("swapped")),
    )


QUERIES = (key("one"), key("two"))


def test_a_batch_key_is_the_digest_of_its_tournament_number_and_queries() -> None:
    """Pinned: a rerun looks for the batch that was planned, by this name."""
    named = batch_key(STREAM, 3, QUERIES)

    assert named == digest_of(["main", 3, [*QUERIES]])


@pytest.mark.parametrize(
    "other",
    [
        batch_key(StreamId("other"), 1, QUERIES),
        batch_key(STREAM, 2, QUERIES),
        batch_key(STREAM, 1, QUERIES[::-1]),
        batch_key(STREAM, 1, QUERIES[:1]),
    ],
)
def test_no_two_plans_share_a_batch_key(other: str) -> None:
    """What failed as a whole is sent again as another batch, with its own fate."""
    named = batch_key(STREAM, 1, QUERIES)

    assert other != named


def test_every_step_of_a_batch_is_one_fact() -> None:
    """A rerun that takes a step again must find that it was taken."""
    plan = planned_batch(*QUERIES)
    steps = [sent(plan.batch_key), not_created(plan.batch_key), ended(plan.batch_key)]

    keys = {step.natural_key for step in steps}

    assert keys == {plan.natural_key} == {(batch_key(STREAM, 1, QUERIES),)}
