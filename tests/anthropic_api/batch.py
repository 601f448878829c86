"""One batch: its requests on disk, and what the API tells of it."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.anthropic_api.clock import stamp
from tests.anthropic_api.limits import BatchRequest
from tests.anthropic_api.prompt import Json

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
    body_digest: str
    status: Status = "in_progress"
    n_retrievals: int = 0
    cancel_initiated_at: datetime | None = None
    ended_at: datetime | None = None
    is_deleted: bool = False
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
