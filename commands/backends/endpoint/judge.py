"""A judge on a server with OpenAI's chat completions, such as vLLM or SGLang."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import httpx2
import openai

from commands.backends.endpoint._replies import reply_of
from commands.backends.endpoint.requests import PATH, ChatForm, remedy_of
from commands.backends.endpoint.server import Endpoint, ServerProbe, UnansweredRequest
from commands.ports import Answer, NoReply
from commands.settings.schema import MaxTokensKey
from ledger.events.registration import JudgeSettings
from projections.tournament.spend import MAY_BE_BILLED
from projections.verdicts.queries import JudgeQuery


class EndpointJudge:
    """Sends one request per query, several at a time."""

    def __init__(
        self,
        judge: JudgeSettings,
        server: Endpoint,
        *,
        n_at_a_time: int,
        max_tokens_key: MaxTokensKey = "max_tokens",
    ) -> None:
        """Send at most n_at_a_time queries at once; judge.model is its name on the server."""
        self._form = ChatForm(judge, max_tokens_key=max_tokens_key)
        self._server = replace(server, remedy_of=remedy_of)
        self._n_at_a_time, self._probe = n_at_a_time, ServerProbe(self._server)

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield answers as they come; after a failure, those to queries already sent come first.

        Raises:
            NoCredentials: The server needs a key, or refuses it.
            ConfigurationError: The server does not have the model, or does not know a setting.
            SpendLimitReached: The server's credit is used up.
            ProviderError: The server cannot be reached, is another API, or rejects every
                request.
        """
        with self._server.client() as client:
            ask = partial(self._answer, client)
            yield from self._probe.ask_all(queries, ask, n_at_a_time=self._n_at_a_time)

    def _answer(self, client: openai.OpenAI, query: JudgeQuery) -> Answer:
        send, read = partial(self._send, client, query), partial(reply_of, query.query_key)
        reply = self._server.answer(send, read)
        if isinstance(reply, UnansweredRequest):
            bill = f"; {MAY_BE_BILLED}" if reply.may_be_billed else ""
            return NoReply(query.query_key, reply.reason, reply.detail + bill)
        return reply

    def _send(self, client: openai.OpenAI, query: JudgeQuery) -> bytes:
        return client.post(PATH, body=self._form.body(query), cast_to=httpx2.Response).content
