"""Batches: their requests on disk, when they end, and the clock that a test moves on."""

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.providers.anthropic.bill import CreatedBatch
from tests.providers.anthropic.errors import (
    BatchRequest,
    Limits,
    batch_requests,
    invalid,
    not_found,
)
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

Status = Literal["in_progress", "canceling", "ended"]


class RequestFile:
    """Requests on disk, read again in any order: a batch may hold 256 MB of them."""

    def __init__(self, path: Path, requests: Iterable[BatchRequest]) -> None:
        self.path = path
        self._ends = array("Q", [0])
        with path.open("wb") as file:
            for request in requests:
                line = msgspec.json.encode(request)
                file.write(line)
                self._ends.append(self._ends[-1] + len(line))

    def __len__(self) -> int:
        """Return how many requests there are."""
        return len(self._ends) - 1

    def read(self, order: Iterable[int]) -> Iterator[BatchRequest]:
        """Yield the requests at places."""
        decoder = msgspec.json.Decoder(BatchRequest)
        with self.path.open("rb") as file:
            for place in order:
                file.seek(self._ends[place])
                yield decoder.decode(file.read(self._ends[place + 1] - self._ends[place]))


@dataclass
class Batch:
    """A batch's state; only batches.py changes it."""

    batch_id: str
    requests: RequestFile
    created_at: datetime
    version: str
    status: Status = "in_progress"
    n_retrievals: int = 0
    cancel_initiated_at: datetime | None = None
    ended_at: datetime | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def expires_at(self) -> datetime:
        """When it ends, if it has not ended before."""
        return self.created_at + EXPIRES_AFTER

    @property
    def results_path(self) -> Path:
        """Where its results are, once it has ended."""
        return self.requests.path.with_suffix(".results.jsonl")

    def as_json(self, base_url: str, now: datetime) -> Json:
        """Return the batch as the API writes it; counts move only when all of it has ended."""
        archived_at = self.created_at + KEPT_FOR
        has_results = self.status == "ended" and now < archived_at
        url = f"{base_url}/v1/messages/batches/{self.batch_id}/results"
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": self._request_counts(),
            "created_at": stamp(self.created_at),
            "expires_at": stamp(self.expires_at),
            "ended_at": stamp(self.ended_at),
            "cancel_initiated_at": stamp(self.cancel_initiated_at),
            "archived_at": stamp(archived_at) if now >= archived_at else None,
            "results_url": url if has_results else None,
        }

    def _request_counts(self) -> Json:
        names = ("succeeded", "errored", "canceled", "expired")
        n_processing = 0 if self.status == "ended" else len(self.requests)
        return {"processing": n_processing, **{name: self.counts[name] for name in names}}


@dataclass(frozen=True)
class Pace:
    """When a batch ends: after so many retrievals that found it open.

    Where that is None, it ends when it is told to, is canceled, or expires.
    """

    ends_after_retrievals: int | None = 1
    share_done_at_cancel: float = 0.0


# (request, API version, batch id, "canceled" or "expired" where it was not reached) -> its result
Processing = Callable[[BatchRequest, str, str, Outcome | None], Json]


class Batches:
    """The batches of a workspace, oldest first; the caller keeps others out meanwhile."""

    def __init__(
        self, folder: Path, *, limits: Limits, pace: Pace, now: Callable[[], datetime]
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._pace = pace
        self._now = now
        self._batches: dict[str, Batch] = {}
        self._n_created = 0

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches, the oldest first."""
        return iter(self._batches.values())

    @property
    def n_open_requests(self) -> int:
        """How many requests are queued."""
        return sum(len(batch.requests) for batch in self if batch.status != "ended")

    def created(self) -> tuple[CreatedBatch, ...]:
        """Return what the books say of all batches, the oldest first."""
        return tuple(
            CreatedBatch(
                batch.batch_id,
                str(stamp(batch.created_at)),
                len(batch.requests),
                batch.status,
            )
            for batch in self
        )

    def create(self, body: bytes, version: str) -> Batch:
        """Accept a batch.

        Raises:
            ApiError: it is malformed (400), too large (413), or more than may be queued (429).
        """
        requests = batch_requests(body)
        self._n_created += 1
        batch_id = "msgbatch_01" + _letters(self._n_created)
        file = RequestFile(self._folder / f"{batch_id}.requests", requests)
        self._batches[batch_id] = Batch(batch_id, file, self._now(), version)
        return self._batches[batch_id]

    def named(self, batch_id: str) -> Batch:
        """Return a batch.

        Raises:
            ApiError: there is none of that id (404).
        """
        batch = self._batches.get(batch_id)
        if batch is None:
            raise not_found(f"No message batch with id {batch_id!r} was found.")
        return batch

    def page(self, *, limit: int, after_id: str | None) -> tuple[Sequence[Batch], bool]:
        """Return a page of the list, newest first, and whether more follow."""
        newest_first = [*reversed(self._batches.values())]
        ids = [batch.batch_id for batch in newest_first]
        if after_id is not None and after_id not in ids:
            raise invalid(f"cursor: no message batch {after_id!r}")
        later = newest_first[0 if after_id is None else ids.index(after_id) + 1 :]
        return later[:limit], len(later) > limit

    def cancel(self, batch: Batch) -> None:
        """Begin to cancel a batch; the next look at it finds it ended.

        Raises:
            ApiError: it has ended (400).
        """
        if batch.status == "ended":
            raise invalid(f"Batch {batch.batch_id} has ended and cannot be canceled.")
        batch.status = "canceling"
        batch.cancel_initiated_at = batch.cancel_initiated_at or self._now()

    def results_of(self, batch: Batch) -> Path:
        """Return the file of a batch's results.

        Raises:
            ApiError: it has not ended, or did so too long ago (404).
        """
        if batch.status != "ended":
            raise not_found(f"Batch {batch.batch_id} has no results yet; it is {batch.status}.")
        if self._now() >= batch.created_at + KEPT_FOR:
            raise not_found(f"The results of batch {batch.batch_id} are no longer available.")
        return batch.results_path

    def is_due(self, batch: Batch) -> bool:
        """Tell whether a batch's end has come."""
        if batch.status != "in_progress":
            return batch.status == "canceling"
        after_n = self._pace.ends_after_retrievals
        if after_n is not None and batch.n_retrievals > after_n:
            return True
        return self._now() >= batch.expires_at

    def end(self, batch: Batch, process: Processing) -> None:
        """Process a batch: its results come in an order of their own."""
        order = list(range(len(batch.requests)))
        random.Random(batch.batch_id).shuffle(order)  # noqa: S311 # no secret
        with batch.results_path.open("wb") as file:
            for request, unreached in self._reached(batch, order):
                result = process(request, batch.version, batch.batch_id, unreached)
                batch.counts[str(result["type"])] += 1
                line = {"custom_id": request.custom_id, "result": result}
                file.write(msgspec.json.encode(line) + b"\n")
        batch.ended_at = min(self._now(), batch.expires_at)
        batch.status = "ended"

    def _reached(
        self, batch: Batch, order: Sequence[int]
    ) -> Iterator[tuple[BatchRequest, Outcome | None]]:
        """Yield each request, and why it was not reached, if it was not."""
        n_done: int = len(order)
        why: Outcome | None = None
        if batch.status == "canceling":
            n_done, why = int(len(order) * self._pace.share_done_at_cancel), "canceled"
        elif self._now() >= batch.expires_at:
            n_done, why = 0, "expired"
        for place, request in enumerate(batch.requests.read(order)):
            yield request, None if place < n_done else why


def _letters(*names: object) -> str:
    return hashlib.sha256(" ".join(map(str, names)).encode()).hexdigest()[:22]
