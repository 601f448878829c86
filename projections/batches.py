"""Batches of judge queries: what was planned, sent, ended, and what nobody knows yet."""

from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from ledger.events.batches import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
)
from ledger.identity import StreamId
from ledger.recorded import Recorded

RESULTS_KEPT: Final = timedelta(days=29)  # from creation: Anthropic, message batches, 2026
Status: TypeAlias = Literal["unknown", "in flight", "not created", "ended"]


class Batch(NamedTuple):
    """One batch, from its plan on."""

    recorded: Recorded  # the plan, with its place and time
    planned: JudgeBatchPlanned
    submitted: JudgeBatchSubmitted | None = None
    end: JudgeBatchEnded | JudgeBatchNotCreated | None = None

    @property
    def stream(self) -> StreamId:
        """The tournament that planned it."""
        return self.recorded.stream

    @property
    def status(self) -> Status:
        """Where it is; `unknown`: it may exist at the provider, or it may not."""
        match self.end:
            case JudgeBatchEnded():
                return "ended"
            case JudgeBatchNotCreated():
                return "not created"
        return "unknown" if self.submitted is None else "in flight"

    @property
    def is_open(self) -> bool:
        """Whether money may be in flight."""
        return self.end is None

    @property
    def results_kept_until(self) -> datetime | None:
        """When the provider deletes its results."""
        return None if self.submitted is None else self.submitted.created_at + RESULTS_KEPT
