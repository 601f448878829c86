"""An entrant that is one of Anthropic's models, asked through its Messages API."""

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Final, cast

import httpx2
from anthropic import Anthropic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic._replies import generated_in
from commands.backends.anthropic.messages import AnthropicMessages
from commands.entrants.chats import prompt_messages
from commands.ports import GeneratedText, GenerationFailure, GenerationTask, NoReply
from ledger.events.registration import Entrant
from ledger.identity import Json
from projections.tournament.estimate import FRAME_TOKENS, n_bytes

_REMEDIES: Final = {"effort": "change it in extra_body, or leave it out"}


class AnthropicResponder:
    """Sends one request per task."""

    def __init__(self, client: Anthropic, entrant: Entrant, *, n_at_a_time: int) -> None:
        """Take the client and the entrant."""
        name = f"entrant {entrant.entrant_id!r}"
        self.url = str(client.base_url)
        self._messages = AnthropicMessages(
            client, name, n_at_a_time=n_at_a_time, remedies=_REMEDIES
        )
        self.host = self._messages.host

    def facts(self) -> None:
        """Return nothing: the API says nothing of itself."""

    def n_input_at_most(self, task: GenerationTask) -> int:
        """Return an upper bound on a request's tokens: a token has at least one byte."""
        return n_bytes(json.dumps(batch_params_of(task), ensure_ascii=False)) + FRAME_TOKENS

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once."""
        if not task.options.is_chat:
            why = "Anthropic's API takes no plain text: ask by the chat template"
            return NoReply(task.response_key, "rejected", why, "not sent")
        began_at = perf_counter()

        def read(body: bytes, _: httpx2.Headers) -> GeneratedText | GenerationFailure | NoReply:
            return generated_in(task.response_key, body, elapsed_s=perf_counter() - began_at)

        return self._messages.send(task.response_key, params_of(task), read, further_of(task))


def params_of(task: GenerationTask) -> MessageCreateParamsNonStreaming:
    """Return the parameters of a task's request; the API samples as it likes."""
    entrant, options = task.entrant, task.options
    prompt = entrant.chosen.around(task.prompt_text)
    messages = task.messages or prompt_messages(entrant.chosen.system, prompt)
    told = [{"role": role, "content": text} for role, text in messages if role != "system"]
    params: dict[str, object] = {
        "model": entrant.weights,
        "max_tokens": entrant.max_new_tokens,
        "messages": told,
    }
    if system := [{"type": "text", "text": text} for role, text in messages if role == "system"]:
        params["system"] = system
    if options.stop:
        params["stop_sequences"] = [*options.stop]
    return cast("MessageCreateParamsNonStreaming", params)


def batch_params_of(task: GenerationTask) -> Mapping[str, object]:
    """Return the parameters of a task's request in a batch, with its further keys."""
    return {**params_of(task), **(further_of(task) or {})}


def further_of(task: GenerationTask) -> Mapping[str, Json] | None:
    """Return the further keys of a task's request."""
    written = task.entrant.chosen.extra_body
    return json.loads(written) if written else None
