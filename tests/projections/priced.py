"""Replies that cost something, for tests that care about tokens and dollars."""

from msgspec.structs import replace

from ledger.events.judging import (
    FailureReason,
    JudgeBatchPlanned,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    VerdictReceived,
    batch_key,
)
from ledger.events.registration import Reference
from ledger.events.values import Price, Usage
from ledger.identity import Digest, JudgeId, digest_of
from projections.tournament.matches import Match
from projections.verdicts.queries import JudgeQuery
from tests.builders import NOON, STREAM, verdict
from tests.projections.worlds import failure

OPUS = Price(
    input=4.0,
    output=20.0,
    cache_write_5m=5.0,
    cache_write_1h=8.0,
    cache_read=0.2,
    table="a table of 2026-10-07",
)


def paid(
    query_key: Digest, usage: Usage, price: Price | None = OPUS, *, by: str = "reference"
) -> VerdictReceived:
    """Return a verdict that took tokens."""
    return replace(verdict(query_key, by=by), usage=usage, price=price)


def paid_in_vain(
    question: JudgeQuery,
    usage: Usage,
    price: Price | None = OPUS,
    *,
    reason: FailureReason = "unreadable",
    attempt: int = 1,
) -> JudgeQueryFailed:
    """Return a reply that took tokens and held no verdict."""
    return replace(failure(question, reason, attempt=attempt), usage=usage, price=price)


def put(
    match: Match, question: JudgeQuery, *, by: str = "reference", attempt: int = 1
) -> JudgeQuerySubmitted:
    """Return the event that puts a question to a judge."""
    pairing = match.pairing
    return JudgeQuerySubmitted(
        query_key=question.query_key,
        judge=JudgeId(by),
        dimension=pairing.rubric.dimension,
        prompt_id=pairing.prompt.prompt_id,
        entrant_a=pairing.a.entrant.entrant_id,
        entrant_b=pairing.b.entrant.entrant_id,
        order=question.order,
        rubric_digest=pairing.rubric.digest,
        response_a=pairing.a.response_key,
        response_b=pairing.b.response_key,
        attempt=attempt,
    )


def planned(*queries: Digest) -> JudgeBatchPlanned:
    """Return the plan of a batch."""
    return JudgeBatchPlanned(
        batch_key=batch_key(STREAM, 1, queries),
        number=1,
        judge=Reference(label="opus", digest=digest_of("opus")),
        queries=queries,
        expected_usd=None,
        worst_usd=None,
        cap_usd=None,
        planned_at=NOON,
    )
