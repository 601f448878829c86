"""Judge queries as requests to chat completions, asked one by one or in batches."""

import json
from typing import Final

from ledger.events.registration import JudgeSettings
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
