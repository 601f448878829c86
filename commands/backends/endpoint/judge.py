"""A judge on a server with OpenAI's chat completions, such as vLLM or SGLang."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from weakref import finalize

from commands.backends.endpoint._replies import reply_of
from commands.backends.endpoint.refused_parameters import LearntParameters
from commands.backends.endpoint.requests import PATH, ChatForm, remedy_of
from commands.backends.endpoint.server import Endpoint, post_by
from commands.ports import Answer, Reply
from ledger.events.registration import JudgeSettings
from ledger.events.requests import ParameterRefused
from projections.verdicts.queries import JudgeQuery


class EndpointJudge:
    """Sends one request per query."""

    def __init__(
        self,
        judge: JudgeSettings,
        server: Endpoint,
        *,
        refused: Sequence[ParameterRefused] = (),
    ) -> None:
        """Take how queries are sent.

        Args:
            judge: Its model is its name on the server.
            server: The server.
            refused: What servers were found not to take.
        """
        self.host = server.host
        self._form = ChatForm(judge)
        self._server = replace(server, remedy_of=remedy_of)
        self._learnt = LearntParameters(server.base_url, judge.model, refused)
        client = server.client()
        self._post = self._learnt.adapt(post_by(client))
        finalize(self, client.close)

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once, or without a parameter that the server does not take."""
        send = partial(self._post, PATH, self._form.body(query))
        answer = self._server.answer(query.query_key, send, partial(reply_of, query.query_key))
        return replace(answer, refused=self._learnt.news()) if isinstance(answer, Reply) else answer
