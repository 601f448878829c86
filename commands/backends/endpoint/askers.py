"""A judge and an entrant on a server with OpenAI's API, such as vLLM or SGLang.

The server renders the chat, counts the tokens and ends the answer. A prompt that it refuses, for
instance as too long, has no answer; no prompt is truncated.
"""

import json
from collections.abc import Sequence
from functools import partial
from time import perf_counter

from commands.backends.endpoint._replies import reply_of, text_of
from commands.backends.endpoint.about import facts_of
from commands.backends.endpoint.refused_parameters import remedy_of
from commands.backends.endpoint.requests import PATH, PLAIN_PATH, ChatForm, body_of
from commands.backends.endpoint.server import Asker, Endpoint
from commands.ports import Answer, GeneratedText, GenerationFailure, GenerationTask, NoReply
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.requests import ParameterRefused, ServerFacts
from projections.tournament.estimate import FRAME_TOKENS, n_bytes
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


class EndpointResponder:
    """Sends one request per task."""

    def __init__(
        self, entrant: Entrant, server: Endpoint, refused: Sequence[ParameterRefused]
    ) -> None:
        """Take the entrant, its server, and what servers do not take."""
        self._model, self._server = entrant.weights, server
        self.url, self.host = server.base_url, server.host
        self._asker = Asker(server, entrant.weights, refused)

    def facts(self) -> ServerFacts | None:
        """Return what the server says of itself."""
        return facts_of(self._model, self._server, self._asker.client)

    def n_input_at_most(self, task: GenerationTask) -> int:
        """Return an upper bound on a request's tokens: a token has at least one byte."""
        return n_bytes(json.dumps(body_of(task), ensure_ascii=False)) + FRAME_TOKENS

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once, or without a parameter that the server does not take."""
        key, options, began_at = task.response_key, task.options, perf_counter()

        def read(body: bytes) -> GeneratedText | GenerationFailure | NoReply:
            return text_of(key, body, elapsed_s=perf_counter() - began_at, stop=options.stop)

        return self._asker.ask(key, PATH if options.is_chat else PLAIN_PATH, body_of(task), read)
