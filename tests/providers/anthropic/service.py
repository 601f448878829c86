"""The API's endpoints, apart from HTTP: a request goes in, an answer comes out; one at a time.

Patterns: platform.claude.com/docs/en/build-with-claude/batch-processing, by way of the API
documentation of autumn 2026. The wording is ours, save where an issue quotes the API's.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Final, Literal

import msgspec

from tests.providers.anthropic.bill import Bill, Books, Line
from tests.providers.anthropic.exchange import (
    Answer,
    Endpoint,
    Fault,
    FaultPlan,
    Outcome,
    Request,
    answer_of,
    refusal_of,
)
from tests.providers.anthropic.messages import Answered, Answering, Assistant, n_input_tokens
from tests.providers.anthropic.prompt import (
    ApiError,
    Json,
    counted_of,
    digest_of,
    invalid,
    not_found,
    params_of,
)
from tests.providers.loopback import TOO_LATE

_VERSIONS: Final = ("2023-01-01", "2023-06-01", "2026-10-21")
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_DEFAULT_PAGE: Final = 20
_EXPIRES_AFTER: Final = timedelta(hours=24)
_KEPT_FOR: Final = timedelta(days=29)  # from created_at, not from ended_at


def real_time() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class BatchRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a batch; its params are not read before the batch is processed."""

    custom_id: str
    params: dict[str, object]


class _BatchBody(msgspec.Struct, frozen=True):
    requests: list[BatchRequest]


_BATCH_BODY: Final = msgspec.json.Decoder(_BatchBody)  # made before any thread, see decode_json


@dataclass
class Batch:
    """A batch's state; only the service changes it."""

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
        return self.created_at + _EXPIRES_AFTER

    def as_json(self, base_url: str, now: datetime) -> Json:
        """Return the batch as the API writes it; counts move only when all of it has ended."""
        archived_at = self.created_at + _KEPT_FOR
        has_ended = self.status == "ended"
        url = f"{base_url}/v1/messages/batches/{self.batch_id}/results"
        counts = {
            name: self.counts[name] for name in ("succeeded", "errored", "canceled", "expired")
        }
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": {"processing": 0 if has_ended else len(self.requests), **counts},
            "created_at": _stamp(self.created_at),
            "expires_at": _stamp(self.expires_at),
            "ended_at": _stamp(self.ended_at),
            "cancel_initiated_at": _stamp(self.cancel_initiated_at),
            "archived_at": _stamp(archived_at) if now >= archived_at else None,
            "results_url": url if has_ended and now < archived_at else None,
        }


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Service:
    """What is behind the endpoints, and the batches of a workspace by id, oldest first."""

    def __init__(
        self,
        answering: Answering,
        plan: FaultPlan,
        now: Callable[[], datetime],
        *,
        ends_after_retrievals: int | None,
        api_key: str | None,
    ) -> None:
        self.base_url, self.longest_page = "", 1000
        self.batches: dict[str, Batch] = {}
        self._plan, self._assistant, self._books = plan, Assistant(answering), Books()
        self._clock, self._ahead = now, timedelta()
        self._ends_after, self._api_key = ends_after_retrievals, api_key
        self._lock = RLock()

    def answer(self, request: Request) -> Answer:
        """Answer a request to the API, with its fault, if one waits for it."""
        call, fault = self._books.call(request), None
        try:
            self._check_headers(request)
            call.endpoint, name = endpoint, _ = request.route()
            fault = self._plan.take(endpoint)
            answer = self._done(request, endpoint, name, fault)
        except ApiError as error:
            answer = answer_of(error.as_json(call.request_id), status=error.status)
            answer = replace(answer, headers={**answer.headers, **error.headers})
        late = {TOO_LATE: "yes"} if fault is not None and fault.kind == "too_late" else {}
        headers = {**answer.headers, **late, "request-id": call.request_id}
        return replace(answer, headers=headers, fault=fault)

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        if settle:
            self.end_batches()
        with self._lock:
            unended = [batch for batch in self.batches.values() if batch.status != "ended"]
            return self._books.bill((*self.batches,), sum(len(each.requests) for each in unended))

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        with self._lock:
            for batch in self.batches.values():
                if batch.status != "ended":
                    self._end(batch)

    def advance(self, by: timedelta) -> None:
        """Let time pass, so that a day passes at once."""
        self._ahead += by

    def _now(self) -> datetime:
        return self._clock() + self._ahead

    def _check_headers(self, request: Request) -> None:
        if not request.key:
            raise ApiError("authentication_error", "x-api-key header is required")
        if self._api_key not in {None, request.key}:
            raise ApiError("authentication_error", "invalid x-api-key")
        version = request.headers.get("anthropic-version")
        if version not in _VERSIONS:
            raise invalid(f"anthropic-version: {version!r} is not a valid version")

    def _done(self, request: Request, endpoint: Endpoint, name: str, fault: Fault | None) -> Answer:
        """Do what is asked, unless a fault comes first or hides that it was done."""
        kind = None if fault is None else fault.kind
        if fault is not None and (refusal := refusal_of(fault)) is not None:
            raise refusal
        if kind == "cut_before":
            return Answer()
        if kind == "page":
            return Answer(body=b"<html>Sign in</html>", headers={"content-type": "text/html"})
        with self._lock:
            answer = self._routed(request, endpoint, name)
        if kind == "error_after":
            raise ApiError("api_error", "Internal server error")
        if kind == "cut_quietly":
            return replace(answer, body=answer.body[: len(answer.body) // 2].rpartition(b"\n")[0])
        return answer

    def _routed(self, request: Request, endpoint: Endpoint, name: str) -> Answer:
        match endpoint:
            case "messages":
                return answer_of(self._message(request.json()))
            case "count_tokens":
                return answer_of({"input_tokens": n_input_tokens(counted_of(request.json()))})
            case "models.list":
                return answer_of({"data": [], "has_more": False})
            case "batches.create":
                return self._told(self._created(request.body))
            case "batches.list":
                return self._listed(request)
            case _:
                return self._of_batch(endpoint, name)

    def _message(self, asked: Json) -> Json:
        """Return the message that answers a direct request.

        Raises:
            ApiError: The request is invalid, or the plan has it that it errs.
        """
        params, digest, shares = params_of(asked), digest_of(asked), self._plan.shares
        spoiling = shares.outcome_of(digest, is_first=self._books.is_first(digest))
        if spoiling == "errored":
            self._books.enter(Line(digest, "errored"))
            self._books.close()
            raise ApiError(shares.error_type, "Internal server error")
        answered = self._assistant.answer(
            params, message_id=self._message_id, now=self._now(), spoiling=spoiling
        )
        self._books.enter(Line(digest, answered.outcome, usage=answered.usage))
        self._books.close()
        return answered.message

    def _told(self, batch: Batch) -> Answer:
        return answer_of(batch.as_json(self.base_url, self._now()))

    def _created(self, body: bytes) -> Batch:
        """Accept a batch, whose params are not read yet.

        Raises:
            ApiError: It has no request, or one without an id that fits and is its own (400).
        """
        try:
            requests = _BATCH_BODY.decode(body).requests
        except msgspec.DecodeError as error:
            raise invalid(f"requests: {error}") from error
        if not requests:
            raise invalid("requests: List should have at least 1 item after validation, not 0")
        seen = set[str]()
        for place, request in enumerate(requests):
            where = f"requests.{place}.custom_id"
            if not _CUSTOM_ID.fullmatch(request.custom_id):
                raise invalid(f"{where}: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
            if request.custom_id in seen:
                raise invalid(f"{where}: {request.custom_id!r} is not unique in the batch")
            seen.add(request.custom_id)
        number = str(1 + len(self.batches)).encode()
        batch_id = f"msgbatch_01{hashlib.sha256(number).hexdigest()[:22]}"
        self.batches[batch_id] = Batch(batch_id, requests, self._now())
        return self.batches[batch_id]

    def _listed(self, request: Request) -> Answer:
        """Return a page of the list, newest first."""
        limit = min(self.longest_page, int(request.query.get("limit", _DEFAULT_PAGE)))
        for batch in self.batches.values():
            self._end_if_due(batch)
        ids, after_id = [*reversed(self.batches)], request.query.get("after_id")
        later = ids[0 if after_id is None else ids.index(after_id) + 1 :]
        page = [self.batches[each].as_json(self.base_url, self._now()) for each in later[:limit]]
        return answer_of({"data": page, "has_more": len(later) > limit})

    def _of_batch(self, endpoint: Endpoint, name: str) -> Answer:
        batch = self.batches.get(name)
        if batch is None:
            raise not_found(f"No message batch with id {name!r} was found.")
        batch.n_retrievals += endpoint == "batches.retrieve"
        self._end_if_due(batch)
        if endpoint == "batches.results":
            return self._results_of(batch)
        if endpoint == "batches.cancel":
            self._cancel(batch)
        return self._told(batch)

    def _results_of(self, batch: Batch) -> Answer:
        if batch.status != "ended":
            raise not_found(f"Batch {batch.batch_id} has no results yet; it is {batch.status}.")
        if self._now() >= batch.created_at + _KEPT_FOR:
            raise not_found(f"The results of batch {batch.batch_id} are no longer available.")
        return Answer(body=batch.results, headers={"content-type": "application/x-jsonl"})

    def _cancel(self, batch: Batch) -> None:
        """Begin to cancel a batch; the next look at it finds it ended."""
        if batch.status == "ended":
            raise invalid(f"Batch {batch.batch_id} has ended and cannot be canceled.")
        batch.status = "canceling"
        batch.cancel_initiated_at = batch.cancel_initiated_at or self._now()

    def _end_if_due(self, batch: Batch) -> None:
        is_looked_at = self._ends_after is not None and batch.n_retrievals > self._ends_after
        is_over = is_looked_at or self._now() >= batch.expires_at
        if batch.status == "canceling" or (batch.status == "in_progress" and is_over):
            self._end(batch)

    def _end(self, batch: Batch) -> None:
        """Process a batch: its results come in an order of their own."""
        unreached: Outcome | None = None
        if batch.status == "canceling":
            unreached = "canceled"
        elif self._now() >= batch.expires_at:
            unreached = "expired"
        mixed = random.Random(batch.batch_id).sample(batch.requests, len(batch.requests))  # noqa: S311  # no secret
        lines = []
        for request in mixed:
            result = self._result(request, batch.batch_id, unreached)
            batch.counts[str(result["type"])] += 1
            lines.append(msgspec.json.encode({"custom_id": request.custom_id, "result": result}))
        batch.results = b"".join(line + b"\n" for line in lines)
        batch.ended_at = min(self._now(), batch.expires_at)
        batch.status = "ended"
        self._books.close()

    def _result(self, request: BatchRequest, batch_id: str, unreached: Outcome | None) -> Json:
        """Return the result of a batch's request, and enter what became of it."""
        digest, name = digest_of(request.params), request.custom_id
        is_first = self._books.is_first(digest, name)
        spoiling = unreached or self._plan.shares.outcome_of(name, is_first=is_first)
        if unreached is not None or spoiling in {"canceled", "expired"}:
            self._books.enter(Line(digest, spoiling, name, batch_id))
            return {"type": spoiling}
        try:
            answered = self._answered_in_batch(request, spoiling)
        except ApiError as error:
            self._books.enter(Line(digest, "errored", name, batch_id))
            return {"type": "errored", "error": error.as_json()}
        self._books.enter(Line(digest, answered.outcome, name, batch_id, answered.usage))
        return {"type": "succeeded", "message": answered.message}

    def _answered_in_batch(self, request: BatchRequest, spoiling: Outcome) -> Answered:
        if spoiling == "errored":
            raise ApiError(self._plan.shares.error_type, "Internal server error")
        return self._assistant.answer(
            params_of(request.params),
            message_id=self._message_id,
            now=self._now(),
            spoiling=spoiling,
            in_batch=request.custom_id,
        )

    @property
    def _message_id(self) -> str:
        return f"msg_01{self._books.n_lines:022d}"
