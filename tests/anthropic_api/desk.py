"""Deals with one Messages request, direct or of a batch, and enters it in the books."""

from typing import NamedTuple

import msgspec

from tests.anthropic_api.bill import Line
from tests.anthropic_api.books import Books
from tests.anthropic_api.clock import Clock
from tests.anthropic_api.errors import ApiError, invalid
from tests.anthropic_api.faults import FaultPlan, Outcome
from tests.anthropic_api.limits import BatchRequest
from tests.anthropic_api.messages import Assistant
from tests.anthropic_api.params import check_params
from tests.anthropic_api.prompt import Json, digest_of
from tests.anthropic_api.usage import Usage


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
