"""Batches of requests to judges and entrants: planned, submitted, ended, or of unknown fate."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from ledger.events import judging
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded

BATCH_EVENTS: Final = frozenset(
    {"JudgeBatchPlanned", "JudgeBatchSubmitted", "JudgeBatchNotCreated", "JudgeBatchEnded"}
)
RESULTS_KEPT: Final = timedelta(days=29)  # from creation: Anthropic, message batches, 2026
Status: TypeAlias = Literal["unknown", "in flight", "not created", "ended"]


class Batch(NamedTuple):
    """One batch and its events so far."""

    recorded: Recorded  # the plan, with its place and time
    planned: judging.JudgeBatchPlanned
    submitted: judging.JudgeBatchSubmitted | None = None
    end: judging.JudgeBatchEnded | judging.JudgeBatchNotCreated | None = None

    @property
    def stream(self) -> StreamId:
        """The tournament that planned it."""
        return self.recorded.stream

    @property
    def status(self) -> Status:
        """Its status; `unknown` if it may or may not exist at the provider."""
        match self.end:
            case judging.JudgeBatchEnded():
                return "ended"
            case judging.JudgeBatchNotCreated():
                return "not created"
        return "unknown" if self.submitted is None else "in flight"

    @property
    def worst_usd_each(self) -> float | None:
        """What one request may have cost, if nothing is known of its result."""
        worst_usd = self.planned.worst_usd
        return None if worst_usd is None else worst_usd / max(1, len(self.planned.queries))

    @property
    def is_open(self) -> bool:
        """Whether it may still cost money."""
        return self.end is None

    @property
    def results_kept_until(self) -> datetime | None:
        """When the provider deletes its results."""
        return None if self.submitted is None else self.submitted.created_at + RESULTS_KEPT


def evolve_batch(batch: Batch | None, recorded: Recorded) -> Batch | None:
    """Return a batch after one more of its events; None if its plan is not in the ledger."""
    match recorded.event:
        case judging.JudgeBatchPlanned() as planned if batch is None:
            return Batch(recorded, planned)
        case judging.JudgeBatchSubmitted() as submitted if batch is not None:
            return batch._replace(submitted=submitted)
        case judging.JudgeBatchNotCreated() | judging.JudgeBatchEnded() as end if batch is not None:
            return batch._replace(end=end)
        case _:
            return batch


def open_batches(events: Iterable[Recorded]) -> tuple[Batch, ...]:
    """Return the open batches of every tournament, in the order of their plans."""
    batches: dict[Digest, Batch] = {}
    for recorded in events:
        if isinstance(recorded.event, judging.BatchFact):
            key = recorded.event.batch_key
            batch = evolve_batch(batches.get(key), recorded)
            if batch is not None:
                batches[key] = batch
    return tuple(batch for batch in batches.values() if batch.is_open)
