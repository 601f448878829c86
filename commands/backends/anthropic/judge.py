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
    fate_of,
)
from commands.backends.remote.pace import Pace
from commands.backends.remote.send import send_queries
from commands.errors import ConfigurationError, ProviderError
from commands.ports import Answer, Asking
from commands.settings.schema import CacheTtl
from ledger.errors import TourneyError
from ledger.events.judging import Fate
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
            max_tokens=self._judge.max_tokens,
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
            if (within := api.error_within(body, response.http_response)) is not None:
                return self._unanswered(within)
            why = ProviderError(api.not_the_api(error))
            raise Stop(why, "perhaps billed", unless_proven=True) from error

    def _unanswered(self, error: APIError) -> Unanswered:
        """Return what became of a request that failed.

        Raises:
            TryAgain: It was certainly not sent, or the provider is busy.
            Stop: The others would fail as well.
        """
        detail, status = api.describe_error(error), api.status_of(error)
        if status is None and not api.may_have_arrived(error):
            raise TryAgain(ProviderError(detail), fate="not sent") from api.without_key(error)
        if status is None:
            return Unanswered(detail, "perhaps billed")
        fate = fate_of(status, api.kinds_of(error))
        if api.is_busy(error) or status == HTTPStatus.SERVICE_UNAVAILABLE:
            asked_s = api.asked_wait_s(error)
            again = TryAgain(ProviderError(detail), fate=fate, is_limit=True, asked_s=asked_s)
            raise again from api.without_key(error)
        fatal = api.fatal_error(error)
        if fatal is not None and status != HTTPStatus.FORBIDDEN:
            raise Stop(fatal, fate) from api.without_key(error)
        if status == HTTPStatus.NOT_FOUND or status < HTTPStatus.BAD_REQUEST:
            raise Stop(ProviderError(detail), fate) from api.without_key(error)
        if status in REJECTED:
            return self._rejected(detail, fate, fatal)
        return Unanswered(detail, fate)  # perhaps of this request only

    def _rejected(self, detail: str, fate: Fate, fatal: TourneyError | None) -> Unanswered:
        """Return a rejection.

        Raises:
            Stop: The model does not take the effort.
        """
        if "effort" in detail:
            fault = (
                f'judge {self._judge.judge_id!r}: {detail}; set another effort, or effort = "none"'
            )
            raise Stop(ConfigurationError([fault]), fate)
        is_certain = _OF_THE_QUERY.search(detail) is not None
        return Unanswered(detail, fate, "rejected", is_certain=is_certain, blames=fatal)
