"""A judge on Anthropic's Messages API, several queries at a time."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

import msgspec
from anthropic import Anthropic, APIError

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of
from commands.backends.anthropic.requests import RequestForm
from commands.backends.remote.outcomes import (
    REJECTED,
    HeldRejections,
    Stop,
    TryAgain,
    Unanswered,
)
from commands.backends.remote.pace import Pace
from commands.backends.remote.send import send_queries
from commands.errors import ConfigurationError, ProviderError
from commands.ports import Answer, Asking
from commands.settings.schema import CacheTtl
from ledger.events.registration import JudgeSettings
from projections.verdicts.queries import JudgeQuery

_OF_THE_QUERY: Final = re.compile(r"prompt is too long|content blocks? must be non-empty")


class AnthropicJudge:
    """Sends each query once, and again only if it certainly was not answered."""

    def __init__(
        self,
        client: Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        n_at_a_time: int,
        pace: Pace | None = None,
    ) -> None:
        self._client, self._judge = client, judge
        self._form = RequestForm(judge, cache=cache)
        self._n_at_a_time, self._pace = n_at_a_time, pace or Pace()
        self._held: HeldRejections[JudgeQuery] = HeldRejections()

    def answer(self, asking: Asking) -> Iterator[tuple[Answer, ...]]:
        """Yield answers as they come.

        After a failure, answers to queries already sent are still yielded before it is raised.

        Raises:
            NoCredentials: The provider refuses the key.
            SpendLimitReached: The provider's spend limit is reached.
            ConfigurationError: The model does not take the judge's effort.
            ProviderError: The provider cannot be reached, is too busy for too long, lacks the
                model, rejects every request, or is another API.
        """
        yield from send_queries(
            f"Anthropic, asked as judge {self._judge.judge_id!r},",
            self._ask,
            self._pace,
            asking,
            n_at_a_time=self._n_at_a_time,
            held=self._held,
        )

    def _ask(self, query: JudgeQuery) -> Answer | Unanswered:
        try:
            response = self._client.messages.with_raw_response.create(**self._form.params(query))
            body = response.read()
        except APIError as error:
            return self._unanswered(error)
        self._pace.hold(api.limit_reset_s(response.headers, self._pace.now()))
        try:
            return answer_of(query.query_key, body)
        except msgspec.DecodeError as error:
            why = ProviderError(api.not_the_api(error))
            raise Stop(why, "perhaps billed", unless_proven=True) from error

    def _unanswered(self, error: APIError) -> Unanswered:
        """Return what became of a request that failed.

        Raises:
            TryAgain: It was certainly not answered.
            Stop: The others would fail as well.
        """
        detail, status = api.describe_error(error), api.status_of(error)
        if api.was_not_answered(error):
            is_of_all = status is None or api.is_busy(error)
            or_else = ProviderError(detail) if is_of_all else Unanswered(detail)
            again = TryAgain(
                or_else,
                fate="not sent" if status is None else "refused",
                is_limit=api.is_busy(error),
                asked_s=api.asked_wait_s(error),
            )
            raise again from api.without_key(error)
        if (fatal := api.fatal_error(error)) is not None:
            raise Stop(fatal) from api.without_key(error)
        if status in REJECTED:
            return self._rejected(detail, is_certain=status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if (
            status is None
            or status == HTTPStatus.REQUEST_TIMEOUT
            or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        ):
            return Unanswered(detail, "perhaps billed")
        raise Stop(ProviderError(detail)) from api.without_key(error)

    def _rejected(self, detail: str, *, is_certain: bool) -> Unanswered:
        """Return a rejection.

        Raises:
            Stop: The model does not take the effort.
        """
        if "effort" in detail:
            fault = (
                f'judge {self._judge.judge_id!r}: {detail}; set another effort, or effort = "none"'
            )
            raise Stop(ConfigurationError([fault]))
        is_certain = is_certain or _OF_THE_QUERY.search(detail) is not None
        return Unanswered(detail, reason="rejected", is_certain=is_certain)
