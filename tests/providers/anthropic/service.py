"""The API's endpoints, apart from HTTP: a request goes in, an answer comes out."""

from datetime import timedelta
from threading import RLock
from typing import Final, NamedTuple

import msgspec

from tests.providers.anthropic.batches import Batch, Batches, Clock
from tests.providers.anthropic.bill import Bill, Books, Call, Line, key_digest
from tests.providers.anthropic.errors import VERSIONS, ApiError, BatchRequest, Rates, invalid
from tests.providers.anthropic.exchange import (
    Answer,
    Fault,
    FaultPlan,
    Outcome,
    Request,
    Route,
    answer_of,
    refusal_of,
)
from tests.providers.anthropic.messages import Assistant, Usage, n_input_tokens
from tests.providers.anthropic.params import check_counted, check_params
from tests.providers.anthropic.prompt import Json, digest_of, model_info, model_named
from tests.providers.loopback import TOO_LATE


class _Dealt(NamedTuple):
    result: Json
    outcome: Outcome
    usage: Usage = Usage()


class Desk:
    """Checks, spoils as the plan has it, answers, and enters what became of it."""

    def __init__(self, assistant: Assistant, plan: FaultPlan, books: Books, clock: Clock) -> None:
        self._assistant = assistant
        self._plan = plan
        self._books = books
        self._clock = clock

    def message(self, params: Json, version: str) -> Json:
        """Return the message that answers a direct request.

        Raises:
            ApiError: the request is invalid, or the plan has it that it errs.
        """
        model = check_params(params, version=version)
        if params.get("stream"):
            raise invalid("stream: this fake does not stream")
        digest, shares = digest_of(params), self._plan.shares
        spoiling = shares.outcome_of(digest, is_first=self._books.is_first(digest))
        if spoiling == "errored":
            self._enter(Line(digest, "errored"))
            raise ApiError(shares.error_type, "Internal server error")
        answered = self._assistant.answer(
            params, model, message_id=self._message_id, now=self._clock.now(), spoiling=spoiling
        )
        self._enter(Line(digest, answered.outcome, usage=answered.usage))
        return answered.message

    def result(
        self, request: BatchRequest, version: str, batch_id: str, unreached: Outcome | None
    ) -> Json:
        """Return the result of a batch's request.

        Args:
            request: the request.
            version: of the API, as the batch was created with.
            batch_id: the batch.
            unreached: "canceled" or "expired" where the batch ended before the request's turn.
        """
        params = msgspec.json.decode(request.params, type=Json)
        digest, name = digest_of(params), request.custom_id
        is_first = self._books.is_first(digest, name)
        spoiling = unreached or self._plan.shares.outcome_of(name, is_first=is_first)
        dealt = self._dealt(params, version, name, spoiling)
        self._books.enter(Line(digest, dealt.outcome, name, batch_id, dealt.usage))
        return dealt.result

    def _dealt(self, params: Json, version: str, name: str, spoiling: Outcome) -> _Dealt:
        if spoiling in {"canceled", "expired"}:
            return _Dealt({"type": spoiling}, spoiling)
        try:
            model = check_params(params, version=version, in_batch=True)
        except ApiError as error:
            return _errored(error)
        if spoiling == "errored":
            return _errored(ApiError(self._plan.shares.error_type, "Internal server error"))
        answered = self._assistant.answer(
            params,
            model,
            message_id=self._message_id,
            now=self._clock.now(),
            spoiling=spoiling,
            in_batch=name,
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
_MAX_PAGE: Final = 1_000
_ORGANIZATION: Final = "00000000-0000-4000-8000-000000000000"
_NO_KEY: Final = key_digest("")


class Service:
    """What is behind the endpoints; one request at a time."""

    def __init__(
        self,
        *,
        batches: Batches,
        desk: Desk,
        books: Books,
        plan: FaultPlan,
        clock: Clock,
        rates: Rates,
        api_key: str | None,
    ) -> None:
        self.base_url = ""
        self._batches = batches
        self._desk = desk
        self._books = books
        self._plan = plan
        self._clock = clock
        self._rates = rates
        self._key_digest = None if api_key is None else key_digest(api_key)
        self._lock = RLock()

    def answer(self, request: Request) -> Answer:
        """Answer a request to the API, with its fault, if one waits for it."""
        call, fault = self._books.call(request), None
        try:
            self._check_headers(request, call)
            route = request.route()
            call.endpoint = route.endpoint
            fault = self._plan.take(route.endpoint)
            answer = self._done(request, route, fault)
        except ApiError as error:
            answer = error_of(error, call.request_id)
        is_cut = fault is not None and fault.kind in {"cut_before", "cut_after"}
        call.status = None if is_cut else answer.status
        return self._signed(answer, call, fault)

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        if settle:
            self.end_batches()
        with self._lock:
            return self._books.bill(self._batches.created(), self._batches.n_open_requests)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        with self._lock:
            for batch in self._batches:
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
        if version is None:
            raise invalid("anthropic-version: header is required")
        if version not in VERSIONS:
            raise invalid(f"anthropic-version: {version!r} is not a valid version")
        with self._lock:
            self._rates.count()

    def _signed(self, answer: Answer, call: Call, fault: Fault | None) -> Answer:
        headers = {
            **answer.headers,
            **self._rates.headers,
            **({TOO_LATE: "yes"} if fault is not None and fault.kind == "too_late" else {}),
            "request-id": call.request_id,
            "anthropic-organization-id": _ORGANIZATION,
        }
        return Answer(answer.status, answer.body, answer.results, headers, fault)

    def _done(self, request: Request, route: Route, fault: Fault | None) -> Answer:
        """Do what is asked, unless a fault comes first or hides that it was done."""
        refusal = None if fault is None else refusal_of(fault)
        if refusal is not None:
            raise refusal
        if fault is not None and fault.kind == "cut_before":
            return Answer()
        if fault is not None and fault.kind == "page":
            return Answer(body=b"<html>Sign in</html>", headers={"content-type": "text/html"})
        with self._lock:
            answer = self._routed(request, route)
        if fault is not None and fault.kind == "error_after":
            raise ApiError("api_error", "Internal server error")
        return answer

    def _routed(self, request: Request, route: Route) -> Answer:
        version = request.headers["anthropic-version"]
        match route.endpoint:
            case "messages":
                return answer_of(self._desk.message(request.json(), version))
            case "count_tokens":
                params = request.json()
                check_counted(params, version=version)
                return answer_of({"input_tokens": n_input_tokens(params)})
            case "models.retrieve":
                return answer_of(model_info(model_named(route.name)))
            case "batches.create":
                return self._told(self._batches.create(request.body, version))
            case "batches.list":
                return self._listed(request)
            case _:
                return self._of_batch(route)

    def _of_batch(self, route: Route) -> Answer:
        batch = self._batches.named(route.name)
        batch.n_retrievals += route.endpoint == "batches.retrieve"
        self._end_if_due(batch)
        match route.endpoint:
            case "batches.results":
                results = self._batches.results_of(batch)
                return Answer(results=results, headers={"content-type": "application/x-jsonl"})
            case "batches.cancel":
                self._batches.cancel(batch)
            case _:
                pass
        return self._told(batch)

    def _told(self, batch: Batch) -> Answer:
        return answer_of(batch.as_json(self.base_url, self._clock.now()))

    def _listed(self, request: Request) -> Answer:
        query = request.query
        limit = query.get("limit", str(_DEFAULT_PAGE))
        if not limit.isdecimal() or not 1 <= int(limit) <= _MAX_PAGE:
            raise invalid(f"limit: Input should be between 1 and {_MAX_PAGE}")
        for batch in self._batches:
            self._end_if_due(batch)
        page, has_more = self._batches.page(limit=int(limit), after_id=query.get("after_id"))
        ids = [batch.batch_id for batch in page]
        data = [batch.as_json(self.base_url, self._clock.now()) for batch in page]
        ends = {"first_id": next(iter(ids), None), "last_id": next(reversed(ids), None)}
        return answer_of({"data": data, "has_more": has_more, **ends})

    def _end_if_due(self, batch: Batch) -> None:
        if self._batches.is_due(batch):
            self._end(batch)

    def _end(self, batch: Batch) -> None:
        self._batches.end(batch, self._desk.result)
        self._books.close()


def error_of(error: ApiError, request_id: str | None = None) -> Answer:
    """Return the answer that an error is."""
    answer = answer_of(error.as_json(request_id), status=error.status)
    return Answer(error.status, answer.body, headers={**answer.headers, **error.headers})
