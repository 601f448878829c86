"""What differs between the batches of judges and those of entrants."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from commands.decisions.commands import SubmitBatch
from commands.ports import BatchAnswer, Batches, BatchState
from ledger.identity import Digest
from projections.tournament.batches import Batch
from projections.tournament.remaining import Unanswered


class BatchSide(Protocol):
    """Knows the provider, the requests and the answers of one side's batches."""

    def port_of(self, batch: Batch) -> Batches[Any, BatchAnswer]:
        """Return the provider of a batch."""

    def submission(self, batch: Batch, found: BatchState) -> SubmitBatch:
        """Return how to record that the provider has a planned batch, sent by another process."""

    def lost(self, batch: Batch) -> tuple[Unanswered | Digest, ...]:
        """Return what of an ended batch has no result, and was not sent again.

        Queries of a judge, or the keys of requests to an entrant.
        """

    def record(self, batch: Batch, answers: Sequence[BatchAnswer]) -> None:
        """Record what came of a batch's requests; what is on record already adds nothing."""


SideOf: TypeAlias = Callable[[Batch], BatchSide]
"""Returns the side that a batch is of."""
