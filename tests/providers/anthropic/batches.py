"""Batches: what became of their requests, when they end, and the clock that a test moves on."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from tests.providers.anthropic.errors import BatchRequest, batch_requests, invalid, not_found
from tests.providers.anthropic.exchange import Outcome
from tests.providers.anthropic.prompt import Json


def real_time() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class Clock:
    """A clock that a test may move on, so that a day passes at once."""

    def __init__(self, now: Callable[[], datetime] = real_time) -> None:
        self._now = now
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the time, later by all that was advanced."""
        return self._now() + self._ahead

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._ahead += by


def stamp(moment: datetime | None) -> str | None:
    """Return a time as the API writes it."""
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


EXPIRES_AFTER: Final = timedelta(hours=24)
KEPT_FOR: Final = timedelta(days=29)  # from created_at, not from ended_at


@dataclass
class Batch:
    """A batch's state; only batches.py changes it."""

    batch_id: str
    requests: Sequence[BatchRequest]
    created_at: datetime
    status: Literal["in_progress", "canceling", "ended"] = "in_progress"
    n_retrievals: int = 0
    cancel_initiated_at: datetime | None = None
    ended_at: datetime | None = None
    counts: Counter[str] = field(default_factory=Counter)
    results: bytes = b""  # once it has ended

    @property
    def expires_at(self) -> datetime:
        """When it ends, if it has not ended before."""
        return self.created_at + EXPIRES_AFTER

    def as_json(self, base_url: str, now: datetime) -> Json:
        """Return the batch as the API writes it; counts move only when all of it has ended."""
        archived_at = self.created_at + KEPT_FOR
        has_results = self.status == "ended" and now < archived_at
        url = f"{base_url}/v1/messages/batches/{self.batch_id}/results"
        names = ("succeeded", "errored", "canceled", "expired")
        n_processing = 0 if self.status == "ended" else len(self.requests)
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": {
                "processing": n_processing,
                **{name: self.counts[name] for name in names},
            },
            "created_at": stamp(self.created_at),
            "expires_at": stamp(self.expires_at),
            "ended_at": stamp(self.ended_at),
            "cancel_initiated_at": stamp(self.cancel_initiated_at),
            "archived_at": stamp(archived_at) if now >= archived_at else None,
            "results_url": url if has_results else None,
        }


# (request, batch id, "canceled" or "expired" where it was not reached) -> its result
Processing = Callable[[BatchRequest, str, Outcome | None], Json]


class Batches:
    """The batches of a workspace, oldest first; the caller keeps others out meanwhile."""

    def __init__(self, ends_after_retrievals: int | None, *, now: Callable[[], datetime]) -> None:
        """Let a batch end after so many retrievals that found it open.

        None: it ends when it is told to, is canceled, or expires.
        """
        self._ends_after, self._now = ends_after_retrievals, now
        self._batches: dict[str, Batch] = {}

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches, the oldest first."""
        return iter(self._batches.values())

    @property
    def n_open_requests(self) -> int:
        """How many requests are queued."""
        return sum(len(batch.requests) for batch in self if batch.status != "ended")

    def create(self, body: bytes) -> Batch:
        """Accept a batch.

        Raises:
            ApiError: It is malformed (400).
        """
        number = str(1 + len(self._batches)).encode()
        batch_id = f"msgbatch_01{hashlib.sha256(number).hexdigest()[:22]}"
        self._batches[batch_id] = Batch(batch_id, batch_requests(body), self._now())
        return self._batches[batch_id]

    def named(self, batch_id: str) -> Batch:
        """Return a batch.

        Raises:
            ApiError: There is none of that id (404).
        """
        batch = self._batches.get(batch_id)
        if batch is None:
            raise not_found(f"No message batch with id {batch_id!r} was found.")
        return batch

    def page(self, *, limit: int, after_id: str | None) -> tuple[Sequence[Batch], bool]:
        """Return a page of the list, newest first, and whether more follow."""
        newest_first = [*reversed(self._batches.values())]
        ids = [batch.batch_id for batch in newest_first]
        later = newest_first[0 if after_id is None else ids.index(after_id) + 1 :]
        return later[:limit], len(later) > limit

    def cancel(self, batch: Batch) -> None:
        """Begin to cancel a batch; the next look at it finds it ended.

        Raises:
            ApiError: It has ended (400).
        """
        if batch.status == "ended":
            raise invalid(f"Batch {batch.batch_id} has ended and cannot be canceled.")
        batch.status = "canceling"
        batch.cancel_initiated_at = batch.cancel_initiated_at or self._now()

    def results_of(self, batch: Batch) -> bytes:
        """Return the file of a batch's results.

        Raises:
            ApiError: It has not ended, or did so too long ago (404).
        """
        if batch.status != "ended":
            raise not_found(f"Batch {batch.batch_id} has no results yet; it is {batch.status}.")
        if self._now() >= batch.created_at + KEPT_FOR:
            raise not_found(f"The results of batch {batch.batch_id} are no longer available.")
        return batch.results

    def is_due(self, batch: Batch) -> bool:
        """Tell whether a batch's end has come."""
        if batch.status != "in_progress":
            return batch.status == "canceling"
        is_looked_at = self._ends_after is not None and batch.n_retrievals > self._ends_after
        return is_looked_at or self._now() >= batch.expires_at

    def end(self, batch: Batch, process: Processing) -> None:
        """Process a batch: its results come in an order of their own."""
        why: Outcome | None = None
        if batch.status == "canceling":
            why = "canceled"
        elif self._now() >= batch.expires_at:
            why = "expired"
        mixed = random.Random(batch.batch_id).sample(batch.requests, len(batch.requests))  # noqa: S311  # no secret
        lines = []
        for request in mixed:
            result = process(request, batch.batch_id, why)
            batch.counts[str(result["type"])] += 1
            lines.append(msgspec.json.encode({"custom_id": request.custom_id, "result": result}))
        batch.results = b"".join(line + b"\n" for line in lines)
        batch.ended_at = min(self._now(), batch.expires_at)
        batch.status = "ended"
