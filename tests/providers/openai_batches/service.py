"""OpenAI's Batch API as it works: files of requests, batches, results in no order, and a bill."""

import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import RLock
from typing import Final, Literal

from tests.providers.anthropic.exchange import Kind
from tests.providers.openai import Json, Said, completion

START: Final = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp())
_DAY_S: Final = 24 * 60 * 60
_MOST_REQUESTS: Final = 50_000
ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})

Call = Literal["upload", "order", "retrieve", "list", "cancel", "content"]
UNDONE: Final = frozenset(
    {"rate_limited", "overloaded", "no_credit", "usage_limit", "too_large"}
    | {"cut_before", "server_error"}
)


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with a call."""

    call: Call
    kind: Kind


@dataclass
class Service:
    """The provider: its files, its batches, and what it bills."""

    say: Callable[[Json], Said]
    api_key: str | None
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Json] = field(default_factory=dict)
    refused: dict[str, tuple[int, Json]] = field(default_factory=dict)  # by custom_id
    why_refused: Callable[[Json], Json | None] = lambda _: None  # what a model does not take
    billed: list[str] = field(default_factory=list)  # the custom_ids that were answered
    calls: list[Call] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    troubles: deque[Trouble] = field(default_factory=deque)
    n_made: int = 0  # files and batches
    ends_by_looking: bool = False  # a batch ends when it is looked at
    longest_page: int = 100
    now: Callable[[], datetime] | None = None  # None: a second passes with each that is made
    lock: RLock = field(default_factory=RLock)

    def number(self) -> int:
        """Return the number of a new file or batch."""
        self.n_made += 1
        return self.n_made

    def trouble_with(self, call: Call) -> Kind | None:
        """Return what is to go wrong with a call; each trouble comes once."""
        for trouble in self.troubles:
            if trouble.call == call:
                self.troubles.remove(trouble)
                return trouble.kind
        return None

    def upload(self, content: bytes) -> Json:
        """Keep a file of requests."""
        name = f"file-{self.number()}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content), "purpose": "batch"}

    def order(self, asked: Json) -> tuple[int, Json]:
        """Take an order, unless it is not one."""
        content = self.files.get(str(asked.get("input_file_id")))
        if content is None:
            return 400, error("No such File object", param="input_file_id")
        if asked.get("completion_window") != "24h":
            return 400, error("completion_window must be 24h", param="completion_window")
        number = self.number()
        made_at = START + number if self.now is None else int(self.now().timestamp())
        batch: Json = {
            "id": f"batch_{number}",
            "object": "batch",
            "endpoint": asked["endpoint"],
            "completion_window": "24h",
            "input_file_id": asked["input_file_id"],
            "status": "validating",
            "created_at": made_at,
            "expires_at": made_at + _DAY_S,
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            "metadata": asked.get("metadata"),
        }
        self.batches[f"batch_{number}"] = batch
        return 200, batch

    def listed(self, after: str | None, limit: int) -> Json:
        """Return a page of batches, the newest first."""
        names = list(reversed(self.batches))
        begin = 0 if after is None else names.index(after) + 1
        limit = min(limit, self.longest_page)
        page = names[begin : begin + limit]
        has_more = begin + limit < len(names)
        data = [self.batches[name] for name in page]
        return {"object": "list", "data": data, "has_more": has_more}

    def looked_at(self, name: str) -> Json:
        """Return a batch."""
        batch = self.batches[name]
        if self.ends_by_looking and batch["status"] not in ENDED:
            self.end(batch)
        return batch

    def cancel(self, batch: Json, *, n_done: int = 0) -> tuple[int, Json]:
        """Stop a batch, after some of it was answered."""
        if batch["status"] in ENDED:
            return 409, error(f"Cannot cancel a batch with status '{batch['status']}'.")
        self.end(batch, "cancelled", n_done=n_done)
        return 200, batch

    def end(self, batch: Json, status: str = "completed", *, n_done: int | None = None) -> None:
        """End a batch: answer its first requests, or all, and write the files of results."""
        lines = [json.loads(line) for line in self.files[str(batch["input_file_id"])].splitlines()]
        if (faults := _faults(lines)) and status == "completed":
            batch.update(status="failed", errors={"object": "list", "data": faults})
            return
        answered = lines[:n_done]
        left = [] if n_done is None else lines[n_done:]
        told = [self._answer(line) for line in answered]
        code = "batch_expired" if status == "expired" else "batch_cancelled"
        # a canceled batch may say nothing of what it left
        told += [_left(line, code) for line in left if status == "expired"]
        done = [each for each in told if each["error"] is None and _status(each) == 200]
        failed = [each for each in told if each not in done]
        n_failed = len(failed) - (len(left) if status == "expired" else 0)
        batch.update(
            status=status,
            output_file_id=self._written(done),
            error_file_id=self._written(failed),
            request_counts={"total": len(lines), "completed": len(done), "failed": n_failed},
        )

    def _answer(self, line: Json) -> Json:
        """Answer a request, and bill it unless it is refused."""
        custom_id = str(line["custom_id"])
        if custom_id in self.refused:
            status, body = self.refused[custom_id]
        else:
            asked = line["body"]
            assert isinstance(asked, dict)
            if (why := self.why_refused(asked)) is not None:
                status, body = 400, why
            else:
                status, body = 200, completion(asked, self.say(asked))
                self.billed.append(custom_id)
        response = {"status_code": status, "request_id": "req_1", "body": body}
        return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}

    def _written(self, lines: Sequence[Json]) -> str | None:
        """Write lines to a file, in no order; none makes no file."""
        if not lines:
            return None
        mixed = random.Random(0).sample(lines, len(lines))  # noqa: S311  # no secret
        content = "".join(f"{json.dumps(line)}\n" for line in mixed)
        return str(self.upload(content.encode())["id"])


def error(message: str, *, param: str | None = None, code: str | None = None) -> Json:
    """Return how the API tells an error."""
    return {"error": {"message": message, "type": "x", "param": param, "code": code}}


def _left(line: Json, code: str) -> Json:
    why = {"code": code, "message": "This request could not be executed in time."}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": None, "error": why}


def _status(line: Json) -> object:
    response = line["response"]
    return response["status_code"] if isinstance(response, dict) else None


def _faults(lines: Sequence[Json]) -> list[Json]:
    """Return what validation finds in a file."""
    names = [line["custom_id"] for line in lines]
    if len(lines) > _MOST_REQUESTS:
        return [{"code": "too_many_requests", "message": "too many", "param": None, "line": None}]
    return [
        {"code": "duplicate_custom_id", "message": "used before", "param": None, "line": n}
        for n, name in enumerate(names, 1)
        if name in names[: n - 1]
    ]
