"""Judge queries, asked one by one or in batches, and entrants' tasks as requests."""

import json
from collections.abc import Mapping
from typing import Final

from commands.entrants.chats import as_json, prompt_messages
from commands.ports import GenerationOptions, GenerationTask
from ledger.events.conversations import Messages
from ledger.events.registration import EntrantOptions, JudgeSettings
from ledger.identity import Json
from projections.verdicts.queries import JudgeQuery, PairQuery

PATH: Final = "/chat/completions"
PLAIN_PATH: Final = "/completions"
"""Where requests go, below the server's base_url: chats, and plain texts."""


class ChatForm:
    """The settings that all requests of one judge share."""

    def __init__(self, judge: JudgeSettings) -> None:
        """Set the form of a judge's requests; judge.model is its name on the server."""
        parameters = dict(judge.parameters)
        is_openai = judge.provider == "openai-batch"  # whose newer models take no max_tokens
        shared: dict[str, Json] = {
            "model": judge.model,
            "max_completion_tokens" if is_openai else "max_tokens": int(parameters["max_tokens"]),
            "temperature": 0.0,
        }
        if "reasoning_effort" in parameters:
            shared["reasoning_effort"] = parameters["reasoning_effort"]
        self.shared = shared  # by all requests
        self._has_schema = judge.protocol == "schema"
        self._extra: dict[str, Json] = json.loads(str(parameters.get("extra_body", "{}")))

    def body(self, query: JudgeQuery) -> dict[str, Json]:
        """Return the JSON of a request."""
        turns = (
            {"role": "system", "content": query.system},
            {"role": "user", "content": query.user},
        )
        return {**self.shared, **self._format(query), **self._extra, "messages": turns}

    def _format(self, query: JudgeQuery) -> dict[str, Json]:
        """Return the schema of a reply if the protocol is one."""
        if not self._has_schema:
            return {}
        name = "verdict" if isinstance(query, PairQuery) else "score"
        schema: dict[str, Json] = {"name": name, "strict": True, "schema": query.reply_schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


def body_of(task: GenerationTask) -> Mapping[str, Json]:
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
