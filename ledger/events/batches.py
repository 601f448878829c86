"""Money in flight: batches of judge queries, from the intent to their end.

The intent is on the disk before anything is sent, so a process that dies leaves a batch that is
known, or one whose fate can be found out: never one that nobody remembers.
"""

from collections.abc import Sequence

from ledger.events.fact import Fact
from ledger.events.limits import Count, Dollars, Moment, Ordinal
from ledger.events.registration import Reference
from ledger.identity import Digest, StreamId, digest_of


def batch_key(stream: StreamId, number: int, queries: Sequence[Digest]) -> Digest:
    """Name a batch by what it asks and the number of its plan: the same may be sent again."""
    return digest_of([stream, number, queries])


class JudgeBatchPlanned(Fact, frozen=True):
    """A batch is about to be sent; committed before money can move."""

    batch_key: Digest
    number: Ordinal  # of the tournament's plans
    judge: Reference  # as it was registered when this was planned
    queries: tuple[Digest, ...]  # query keys, as they are sent
    expected_usd: Dollars | None  # None: nobody knows the price
    worst_usd: Dollars | None
    cap_usd: Dollars | None  # None: no cap was set
    planned_at: Moment  # by this machine's clock: a ledger's own never goes back

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A batch is planned once."""
        return (self.batch_key,)


class JudgeBatchSubmitted(Fact, frozen=True):
    """The provider accepted a batch; its queries are recorded in the same transaction."""

    batch_key: Digest
    provider_batch_id: str
    created_at: Moment  # the provider's clock
    expires_at: Moment

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A plan becomes one batch."""
        return (self.batch_key,)


class JudgeBatchNotCreated(Fact, frozen=True):
    """A planned batch does not exist at the provider, and never will; nothing was paid."""

    batch_key: Digest
    why: str

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A plan fails once; what it was to ask is planned anew."""
        return (self.batch_key,)


class JudgeBatchEnded(Fact, frozen=True):
    """Every result of a batch was read and recorded; the counts are the provider's."""

    batch_key: Digest
    n_succeeded: Count
    n_errored: Count
    n_canceled: Count
    n_expired: Count

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A batch ends once."""
        return (self.batch_key,)
