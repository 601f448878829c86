"""An entrant on a server with OpenAI's API, such as vLLM or SGLang.

The server renders the chat, counts the tokens and ends the answer. A prompt that it refuses, for
instance as too long, has no answer; no prompt is truncated.
"""

import json
from collections.abc import Mapping, Sequence
from time import perf_counter

from commands.backends.endpoint._replies import text_of
from commands.backends.endpoint.about import facts_of
from commands.backends.endpoint.requests import PATH, PLAIN_PATH
from commands.backends.endpoint.server import Asker, Endpoint
from commands.entrants.chats import as_json, prompt_messages
from commands.ports import (
    GeneratedText,
    GenerationFailure,
    GenerationOptions,
    GenerationTask,
    NoReply,
)
from ledger.events.conversations import Messages
from ledger.events.options import EntrantOptions
from ledger.events.registration import Entrant
from ledger.events.requests import ParameterRefused, ServerFacts
from ledger.identity import Json
from projections.tournament.estimate import FRAME_TOKENS, n_bytes


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
        return n_bytes(json.dumps(_body(task), ensure_ascii=False)) + FRAME_TOKENS

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once, or without a parameter that the server does not take."""
        key, options, began_at = task.response_key, task.options, perf_counter()

        def read(body: bytes) -> GeneratedText | GenerationFailure | NoReply:
            return text_of(key, body, elapsed_s=perf_counter() - began_at, stop=options.stop)

        return self._asker.ask(key, PATH if options.is_chat else PLAIN_PATH, _body(task), read)


def _body(task: GenerationTask) -> Mapping[str, Json]:
    """Return the JSON of a task, as a chat or as plain text.

    Options that greedy decoding ignores are left out.
    """
    entrant, options = task.entrant, task.options
    body: dict[str, Json] = {
        "model": entrant.weights,
        "max_tokens": entrant.max_new_tokens,
        "temperature": entrant.temperature or 0.0,
    }
    prompt = entrant.chosen.around(task.prompt_text)
    messages = task.messages or prompt_messages(entrant.chosen.system, prompt)
    body |= _chat(entrant.chosen, messages) if options.is_chat else {"prompt": prompt}
    if entrant.temperature is not None:
        body |= {"seed": task.seed, **_sampling(options)}
    if options.repetition_penalty != 1:
        body["repetition_penalty"] = options.repetition_penalty
    if options.stop:
        body["stop"] = options.stop
    body |= json.loads(entrant.chosen.extra_body or "{}")
    return body


def _chat(options: EntrantOptions, messages: Messages) -> Mapping[str, Json]:
    """Return the turns of a chat; vLLM and SGLang let an answer go on."""
    chat: dict[str, Json] = {"messages": tuple(as_json(messages))}
    if messages[-1][0] == "assistant":
        chat |= {"add_generation_prompt": False, "continue_final_message": True}
    if options.template_arguments:
        chat["chat_template_kwargs"] = json.loads(options.template_arguments)
    return chat


def _sampling(options: GenerationOptions) -> Mapping[str, Json]:
    """Return from which tokens to sample, as far as it is not from all."""
    chosen = {"top_p": options.top_p, "top_k": options.top_k, "min_p": options.min_p}
    unset = {"top_p": 1.0, "top_k": None, "min_p": 0.0}
    return {name: value for name, value in chosen.items() if value != unset[name]}
