"""A judge on a server with OpenAI's chat completions, such as vLLM or SGLang."""

from collections.abc import Sequence
from functools import partial

from commands.backends.endpoint._replies import reply_of
from commands.backends.endpoint.refused_parameters import remedy_of
from commands.backends.endpoint.requests import PATH, ChatForm
from commands.backends.endpoint.server import Asker, Endpoint
from commands.ports import Answer
from ledger.events.registration import JudgeSettings
from ledger.events.requests import ParameterRefused
from projections.verdicts.queries import JudgeQuery


class EndpointJudge:
    """Sends one request per query."""

    def __init__(
        self, judge: JudgeSettings, server: Endpoint, *, refused: Sequence[ParameterRefused] = ()
    ) -> None:
        """Take the judge, its server, and what servers were found not to take."""
        self.host = server.host
        self._form = ChatForm(judge)
        self._asker = Asker(server, judge.model, refused, remedy_of=remedy_of)

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once, or without a parameter that the server does not take."""
        key = query.query_key
        return self._asker.ask(key, PATH, self._form.body(query), partial(reply_of, key))
