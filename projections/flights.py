"""Flights: the batches that are with a provider, or may be, of every tournament of a ledger."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from ledger.events.batches import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
)
from ledger.recorded import Recorded
from projections.batches import RESULTS_KEPT
from projections.view import View


class Flight(msgspec.Struct, frozen=True):
    """One batch in flight."""

    stream: str
    judge: str
    n_queries: int
    provider_batch_id: str | None = None  # None: it may exist, or it may not
    created_at: datetime | None = None

    @property
    def results_kept_until(self) -> datetime | None:
        """When its results are deleted, read or not."""
        return None if self.created_at is None else self.created_at + RESULTS_KEPT


class Flights(msgspec.Struct, frozen=True):
    """Batches in flight by batch key, in the order of their plans."""

    open: dict[str, Flight]


def _advance(flights: Flights, events: Iterable[Recorded]) -> Flights:
    now_open = dict(flights.open)
    for recorded in events:
        match recorded.event:
            case JudgeBatchPlanned(batch_key=key, judge=judge, queries=queries):
                now_open.setdefault(key, Flight(recorded.stream, judge.label, len(queries)))
            case JudgeBatchSubmitted(batch_key=key) as event if key in now_open:
                now_open[key] = msgspec.structs.replace(
                    now_open[key],
                    provider_batch_id=event.provider_batch_id,
                    created_at=event.created_at,
                )
            case JudgeBatchEnded(batch_key=key) | JudgeBatchNotCreated(batch_key=key):
                now_open.pop(key, None)
            case _:
                continue
    return Flights(now_open)


FLIGHTS: Final = View(
    "flights",
    1,
    frozenset(
        {"JudgeBatchPlanned", "JudgeBatchSubmitted", "JudgeBatchNotCreated", "JudgeBatchEnded"}
    ),
    Flights({}),
    _advance,
)
"""What is in flight."""
