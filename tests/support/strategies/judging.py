"""Strategies of the events of judging: queries, batches, verdicts and outcomes."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ledger.events.evaluations import SampleName
from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    JudgeQueryFailed,
    JudgeQueryReopened,
    JudgeQuerySubmitted,
    PairReconciled,
    ScoreQuerySubmitted,
    ScoreReceived,
    ScoreShared,
    VerdictReceived,
)
from ledger.events.registration import Reference
from ledger.identity import Digest, digest_of
from tests.support.strategies.registration import scales
from tests.support.strategies.values import (
    COUNTS,
    DOLLARS,
    FEW,
    FINITE,
    LABELS,
    ORDINALS,
    built,
    digests,
    moments,
    prices,
    tuples,
    usages,
)


def batch_keys() -> SearchStrategy[Digest]:
    """Return the keys of few batches: what is said of one is mostly about a plan that is there."""
    return st.sampled_from([digest_of(f"batch {n}") for n in range(3)])


def judge_batch_planned() -> SearchStrategy[JudgeBatchPlanned]:
    """Return plans of batches; nothing need have come of them."""
    usd = {name: st.none() | DOLLARS for name in ("expected_usd", "worst_usd", "cap_usd")}
    return built(
        JudgeBatchPlanned,
        batch_key=batch_keys(),
        planned_at=moments(),
        number=ORDINALS,
        judge=built(Reference, label=LABELS, digest=digests()),
        queries=tuples(digests()),
        **usd,
    )


def judge_batch_submitted() -> SearchStrategy[JudgeBatchSubmitted]:
    """Return batches that a provider took; their plans need not be there."""
    return built(
        JudgeBatchSubmitted, batch_key=batch_keys(), created_at=moments(), expires_at=moments()
    )


def judge_batch_not_created() -> SearchStrategy[JudgeBatchNotCreated]:
    """Return batches that do not exist; their plans need not be there."""
    return built(JudgeBatchNotCreated, batch_key=batch_keys())


def judge_batch_ended() -> SearchStrategy[JudgeBatchEnded]:
    """Return ends of batches that need not have begun."""
    counts = {name: COUNTS for name in JudgeBatchEnded.__struct_fields__ if name != "batch_key"}
    return built(JudgeBatchEnded, batch_key=batch_keys(), **counts)


def judge_query_submitted() -> SearchStrategy[JudgeQuerySubmitted]:
    """Return judge queries; the responses they show need not be there."""
    return built(
        JudgeQuerySubmitted,
        query_key=digests(),
        judge=LABELS,
        dimension=LABELS,
        prompt_id=LABELS,
        entrant_a=LABELS,
        entrant_b=LABELS,
        rubric_digest=digests(),
        response_a=digests(),
        response_b=digests(),
        attempt=ORDINALS,
        batch_key=st.none() | batch_keys(),
        worst_usd=st.none() | DOLLARS,
    )


def verdict_received() -> SearchStrategy[VerdictReceived]:
    """Return verdicts; their queries need not be there."""
    return built(VerdictReceived, query_key=digests(), judge=LABELS, **_paid())


def score_query_submitted() -> SearchStrategy[ScoreQuerySubmitted]:
    """Return queries for scores; the samples that they are about need not be there."""
    return built(
        ScoreQuerySubmitted,
        query_key=few_queries(),
        judge=LABELS,
        evaluation=LABELS,
        scoring=digests(),
        scale=scales(),
        samples=samples(),
        attempt=ORDINALS,
        batch_key=st.none() | batch_keys(),
        worst_usd=st.none() | DOLLARS,
    )


def score_received() -> SearchStrategy[ScoreReceived]:
    """Return scores; their queries need not be there."""
    return built(ScoreReceived, query_key=few_queries(), judge=LABELS, score=FINITE, **_paid())


def score_shared() -> SearchStrategy[ScoreShared]:
    """Return samples that share a score; its query need not be there."""
    return built(ScoreShared, query_key=few_queries(), scoring=digests(), samples=samples())


def few_queries() -> SearchStrategy[Digest]:
    """Return the keys of few queries, so that some of what is said is about one that is there."""
    return st.sampled_from([digest_of(f"score {n}") for n in range(3)])


def samples() -> SearchStrategy[tuple[SampleName, ...]]:
    """Return the names of few samples."""
    return tuples(built(SampleName, run_key=digests(), item=digests(), sample=FEW))


def judge_query_failed() -> SearchStrategy[JudgeQueryFailed]:
    """Return failures to judge; their queries need not be there."""
    return built(
        JudgeQueryFailed,
        query_key=digests(),
        judge=LABELS,
        attempt=ORDINALS,
        **_paid(),
    )


def judge_query_reopened() -> SearchStrategy[JudgeQueryReopened]:
    """Return queries to be asked again; their failures need not be there."""
    return built(JudgeQueryReopened, query_key=digests(), judge=LABELS, attempt=ORDINALS)


def _paid() -> dict[str, SearchStrategy[Any]]:
    """Return what is known of a reply's cost, which may be nothing."""
    cost = {"usage": st.none() | usages(), "price": st.none() | prices()}
    return {**cost, "worst_usd": st.none() | DOLLARS}


def pair_reconciled() -> SearchStrategy[PairReconciled]:
    """Return outcomes; their verdicts need not be there."""
    return built(
        PairReconciled,
        dimension=LABELS,
        prompt_id=LABELS,
        entrant_a=LABELS,
        entrant_b=LABELS,
        judge=LABELS,
        forward=digests(),
        swapped=digests(),
    )
