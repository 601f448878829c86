"""The API's endpoints, apart from HTTP: a request goes in, an answer comes out."""

from dataclasses import replace
from datetime import timedelta
from threading import RLock
from typing import Final, NamedTuple

from tests.providers.anthropic.batches import Batch, Batches, Clock
from tests.providers.anthropic.bill import Bill, Books, Call, Line, key_digest
from tests.providers.anthropic.errors import VERSIONS, ApiError, BatchRequest, invalid
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
from tests.providers.anthropic.messages import Answering, Assistant, Usage, n_input_tokens
from tests.providers.anthropic.prompt import Json, counted_of, digest_of, params_of
from tests.providers.loopback import TOO_LATE


class _Dealt(NamedTuple):
    result: Json
    outcome: Outcome
    usage: Usage = Usage()


class Desk:
    """Checks, spoils as the plan has it, answers, and enters what became of it."""

    def __init__(self, answering: Answering, plan: FaultPlan, books: Books, clock: Clock) -> None:
        self._assistant = Assistant(answering)
        self._plan = plan
        self._books = books
        self._clock = clock

    def message(self, asked: Json) -> Json:
        """Return the message that answers a direct request.

        Raises:
            ApiError: The request is invalid, or the plan has it that it errs.
        """
        params = params_of(asked)
        digest, shares = digest_of(asked), self._plan.shares
        spoiling = shares.outcome_of(digest, is_first=self._books.is_first(digest))
        if spoiling == "errored":
            self._enter(Line(digest, "errored"))
            raise ApiError(shares.error_type, "Internal server error")
        answered = self._assistant.answer(
            params, message_id=self._message_id, now=self._clock.now(), spoiling=spoiling
        )
        self._enter(Line(digest, answered.outcome, usage=answered.usage))
        return answered.message

    def result(self, request: BatchRequest, batch_id: str, unreached: Outcome | None) -> Json:
        """Return the result of a batch's request.

        Args:
            request: the request.
            batch_id: the batch.
            unreached: "canceled" or "expired" where the batch ended before the request's turn.
        """
        digest, name = digest_of(request.params), request.custom_id
        is_first = self._books.is_first(digest, name)
        spoiling = unreached or self._plan.shares.outcome_of(name, is_first=is_first)
        dealt = self._dealt(request, spoiling)
        self._books.enter(Line(digest, dealt.outcome, name, batch_id, dealt.usage))
        return dealt.result

    def _dealt(self, request: BatchRequest, spoiling: Outcome) -> _Dealt:
        if spoiling in {"canceled", "expired"}:
            return _Dealt({"type": spoiling}, spoiling)
        if spoiling == "errored":
            return _errored(ApiError(self._plan.shares.error_type, "Internal server error"))
        try:
            params = params_of(request.params)
        except ApiError as error:
            return _errored(error)
        answered = self._assistant.answer(
            params,
            message_id=self._message_id,
            now=self._clock.now(),
            spoiling=spoiling,
            in_batch=request.custom_id,
        )
        result: Json = {"type": "succeeded", "message": answered.message}
        return _Dealt(result, answered.outcome, answered.usage)

    def _enter(self, line: Line) -> None:
        self._books.enter(line)
        self._books.close()

    @property
    def _message_id(self) -> str:
        return f"msg_01{self._books.n_lines:022d}"


def _errored(error: ApiError) -> _Dealt:
    return _Dealt({"type": "errored", "error": error.as_json()}, "errored")


_DEFAULT_PAGE: Final = 20
_NO_KEY: Final = key_digest("")


class Service:
    """What is behind the endpoints; one request at a time."""

    def __init__(
        self,
        answering: Answering,
        plan: FaultPlan,
        clock: Clock,
        *,
        ends_after_retrievals: int | None,
        api_key: str | None,
    ) -> None:
        self.base_url = ""
        self._plan, self._clock, self._books = plan, clock, Books()
        self.batches = Batches(ends_after_retrievals, now=clock.now)
        self._desk = Desk(answering, plan, self._books, clock)
        self._key_digest = None if api_key is None else key_digest(api_key)
        self._lock, self.longest_page = RLock(), 1000

    def answer(self, request: Request) -> Answer:
        """Answer a request to the API, with its fault, if one waits for it."""
        call, fault = self._books.call(request), None
        try:
            self._check_headers(request, call)
            call.endpoint, name = endpoint, _ = request.route()
            fault = self._plan.take(endpoint)
            answer = self._done(request, endpoint, name, fault)
        except ApiError as error:
            answer = error_of(error, call.request_id)
        late = {TOO_LATE: "yes"} if fault is not None and fault.kind == "too_late" else {}
        headers = {**answer.headers, **late, "request-id": call.request_id}
        return replace(answer, headers=headers, fault=fault)

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        if settle:
            self.end_batches()
        with self._lock:
            ids = tuple(batch.batch_id for batch in self.batches)
            return self._books.bill(ids, self.batches.n_open_requests)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        with self._lock:
            for batch in self.batches:
                if batch.status != "ended":
                    self._end(batch)

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._clock.advance(by)

    def _check_headers(self, request: Request, call: Call) -> None:
        if call.key_digest == _NO_KEY:
            raise ApiError("authentication_error", "x-api-key header is required")
        if self._key_digest not in {None, call.key_digest}:
            raise ApiError("authentication_error", "invalid x-api-key")
        version = request.headers.get("anthropic-version")
        if version not in VERSIONS:
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
                return answer_of(self._desk.message(request.json()))
            case "count_tokens":
                return answer_of({"input_tokens": n_input_tokens(counted_of(request.json()))})
            case "models.list":
                return answer_of({"data": [], "has_more": False})
            case "batches.create":
                return self._told(self.batches.create(request.body))
            case "batches.list":
                return self._listed(request)
            case _:
                return self._of_batch(endpoint, name)

    def _of_batch(self, endpoint: Endpoint, name: str) -> Answer:
        batch = self.batches.named(name)
        batch.n_retrievals += endpoint == "batches.retrieve"
        self._end_if_due(batch)
        if endpoint == "batches.results":
            headers = {"content-type": "application/x-jsonl"}
            return Answer(body=self.batches.results_of(batch), headers=headers)
        if endpoint == "batches.cancel":
            self.batches.cancel(batch)
        return self._told(batch)

    def _told(self, batch: Batch) -> Answer:
        return answer_of(batch.as_json(self.base_url, self._clock.now()))

    def _listed(self, request: Request) -> Answer:
        limit = min(self.longest_page, int(request.query.get("limit", _DEFAULT_PAGE)))
        for batch in self.batches:
            self._end_if_due(batch)
        page, has_more = self.batches.page(limit=limit, after_id=request.query.get("after_id"))
        data = [batch.as_json(self.base_url, self._clock.now()) for batch in page]
        return answer_of({"data": data, "has_more": has_more})

    def _end_if_due(self, batch: Batch) -> None:
        if self.batches.is_due(batch):
            self._end(batch)

    def _end(self, batch: Batch) -> None:
        self.batches.end(batch, self._desk.result)
        self._books.close()


def error_of(error: ApiError, request_id: str | None = None) -> Answer:
    """Return the answer that an error is."""
    answer = answer_of(error.as_json(request_id), status=error.status)
    return replace(answer, headers={**answer.headers, **error.headers})
