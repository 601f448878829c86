"""A judge on Anthropic's Messages API."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec
from anthropic import Anthropic, APIError

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of
from commands.backends.anthropic.requests import RequestForm
from commands.backends.remote.bodies import TIMEOUT_S
from commands.backends.remote.outcomes import REJECTED, failed, fate_of
from commands.errors import ConfigurationError, ProviderError
from commands.ports import Answer, Host, NoReply, Reply
from commands.settings.schema import CacheTtl
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from ledger.store import utc_now
from projections.verdicts.queries import JudgeQuery

_OF_THE_QUERY: Final = re.compile(r"prompt is too long|content blocks? must be non-empty")


class AnthropicJudge:
    """Sends one request per query."""

    def __init__(
        self,
        client: Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        n_at_a_time: int,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.host = Host(f"Anthropic, asked as judge {judge.judge_id!r},", n_at_a_time, TIMEOUT_S)
        self._client, self._judge, self._now = client, judge, now
        self._form = RequestForm(judge, cache=cache)

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once."""
        key = query.query_key
        try:
            response = self._client.messages.with_raw_response.create(**self._form.params(query))
            body = response.read()
        except APIError as error:
            return self._failure(key, error)
        try:
            answer = answer_of(key, body)
        except msgspec.DecodeError as error:
            if (within := api.error_within(body, response.http_response)) is not None:
                return self._failure(key, within)
            why = ProviderError(api.not_the_api(error))
            return failed(key, why, "perhaps billed", "stop", is_certain=False)
        asked_s = api.limit_reset_s(response.headers, self._now())
        return replace(answer, asked_s=asked_s) if isinstance(answer, Reply) else answer

    def _failure(self, key: Digest, error: APIError) -> NoReply:
        """Return what became of a request that failed."""
        detail, status = api.describe_error(error), api.status_of(error)
        if status is None and not api.may_have_arrived(error):
            return failed(key, ProviderError(detail), "not sent", "ask again")
        if status is None:
            return NoReply(key, "errored", detail, "perhaps billed")
        fate = fate_of(status, api.kinds_of(error))
        if api.is_busy(error) or status == HTTPStatus.SERVICE_UNAVAILABLE:
            asked_s = api.asked_wait_s(error)
            return failed(key, ProviderError(detail), fate, "wait", asked_s=asked_s)
        fatal = api.fatal_error(error)
        if fatal is not None and status != HTTPStatus.FORBIDDEN:
            return failed(key, fatal, fate, "stop")
        if status == HTTPStatus.NOT_FOUND or status < HTTPStatus.BAD_REQUEST:
            return failed(key, ProviderError(detail), fate, "stop")
        if status in REJECTED and "effort" in detail:
            name = self._judge.judge_id
            fault = f'judge {name!r}: {detail}; set another effort, or effort = "none"'
            return failed(key, ConfigurationError([fault]), fate, "stop")
        if status in REJECTED:
            is_certain = _OF_THE_QUERY.search(detail) is not None
            return NoReply(key, "rejected", detail, fate, error=fatal, is_certain=is_certain)
        return NoReply(key, "errored", detail, fate)  # perhaps of this request only
