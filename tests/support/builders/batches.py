"""Builders of batches: what is planned, what a provider takes, and how it ends."""

from datetime import timedelta

from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    batch_key,
)
from ledger.events.money import Price, Usage
from ledger.events.registration import Entrant, JudgeSettings, Reference
from ledger.identity import Digest
from tests.support.builders.events import NOON, STREAM, judge

DEAR = Price(
    input=1.0,
    output=10.0,
    cache_write_5m=1.25,
    cache_write_1h=2.0,
    cache_read=0.125,
    table="list 2026-04-27",
)
USED = Usage(n_input=1_000, n_output=99_900)  # a dollar at that price


def planned_batch(
    *queries: Digest, number: int = 1, by: JudgeSettings | Entrant | None = None
) -> JudgeBatchPlanned:
    """Return the plan of a batch, whose cost nobody knows."""
    asked = by or judge()
    label = asked.entrant_id if isinstance(asked, Entrant) else asked.judge_id
    return JudgeBatchPlanned(
        batch_key=batch_key(STREAM, number, queries),
        number=number,
        judge=Reference(label=label, digest=asked.content_digest),
        queries=queries,
        expected_usd=None,
        worst_usd=None,
        cap_usd=None,
        planned_at=NOON,
    )


def sent(key: Digest) -> JudgeBatchSubmitted:
    """Return what is recorded when the provider takes a batch, at noon."""
    return JudgeBatchSubmitted(
        batch_key=key,
        provider_batch_id="msgbatch_01",
        created_at=NOON,
        expires_at=NOON + timedelta(days=1),
    )


def not_created(key: Digest) -> JudgeBatchNotCreated:
    """Return what is recorded when the provider refuses a batch."""
    return JudgeBatchNotCreated(batch_key=key, why="refused")


def ended(key: Digest, n_succeeded: int = 2, n_errored: int = 0) -> JudgeBatchEnded:
    """Return the end of a batch."""
    return JudgeBatchEnded(
        batch_key=key,
        n_succeeded=n_succeeded,
        n_errored=n_errored,
        n_canceled=0,
        n_expired=0,
    )
