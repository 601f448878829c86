"""A judge on a server with OpenAI's chat completions, such as vLLM or SGLang."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from commands.backends.endpoint._replies import reply_of
from commands.backends.endpoint.refused_parameters import LearntParameters, described
from commands.backends.endpoint.requests import (
    PATH,
    ChatForm,
    remedy_of,
)
from commands.backends.endpoint.server import Endpoint, Post, post_by
from commands.backends.remote.outcomes import HeldRejections, Unanswered
from commands.backends.remote.pace import Pace
from commands.backends.remote.send import send_queries
from commands.ports import Answer, Asking
from commands.settings.schema import MaxTokensKey
from ledger.events.registration import JudgeSettings
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
        self._n_at_a_time, self._pace = n_at_a_time, Pace()
        self._model, self._max_tokens = judge.model, judge.max_tokens
        self._held: HeldRejections[JudgeQuery] = HeldRejections()

    def answer(self, asking: Asking) -> Iterator[tuple[Answer, ...]]:
        """Yield answers as they come; after a failure, those to queries already sent come first.

        Raises:
            NoCredentials: The server needs a key, or refuses it.
            ConfigurationError: The server does not have the model, or does not know a setting.
            SpendLimitReached: The server's credit is used up.
            ProviderError: The server cannot be reached, is another API, is too busy for too long,
                or rejects every request.
        """
        learnt = LearntParameters(self._server.base_url, self._model, asking.refused)
        with self._server.client() as client:
            for group in send_queries(
                self._server.name,
                partial(self._answer, learnt.adapt(post_by(client))),
                self._pace,
                asking,
                n_at_a_time=self._n_at_a_time,
                held=self._held,
                max_tokens=self._max_tokens,
                timeout_s=self._server.timeout_s,
            ):
                if news := learnt.news():
                    asking.learn(news)
                for refused in news:
                    asking.tell(described(refused))
                yield group

    def _answer(self, post: Post, query: JudgeQuery) -> Answer | Unanswered:
        send = partial(post, PATH, self._form.body(query))
        return self._server.answer(send, partial(reply_of, query.query_key))
