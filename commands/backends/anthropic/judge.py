"""A judge on Anthropic's Messages API."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import httpx2
from anthropic import Anthropic

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of
from commands.backends.anthropic.messages import AnthropicMessages
from commands.backends.anthropic.requests import RequestForm
from commands.ports import Answer, Reply
from commands.settings.schema import CacheTtl
from ledger.events.registration import JudgeSettings
from ledger.store import utc_now
from projections.verdicts.queries import JudgeQuery


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
        remedies = {"effort": 'set another effort, or effort = "none"'}
        self._messages = AnthropicMessages(
            client, f"judge {judge.judge_id!r}", n_at_a_time=n_at_a_time, remedies=remedies
        )
        self.host = self._messages.host
        self._form, self._now = RequestForm(judge, cache=cache), now

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once."""

        def read(body: bytes, headers: httpx2.Headers) -> Answer:
            answer = answer_of(query.query_key, body)
            asked_s = api.limit_reset_s(headers, self._now())
            return replace(answer, asked_s=asked_s) if isinstance(answer, Reply) else answer

        return self._messages.send(query.query_key, self._form.params(query), read)
