"""Judge queries as requests for chat completions."""

from typing import Final

from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.shared_params import ResponseFormatJSONSchema

from ledger.events.registration import JudgeSettings
from projections.verdicts.queries import VERDICT_SCHEMA, JudgeQuery

_VERDICT_FORMAT: Final = ResponseFormatJSONSchema(
    type="json_schema",
    json_schema={"name": "verdict", "strict": True, "schema": dict(VERDICT_SCHEMA)},
)


class ChatRequestForm:
    """The settings that all requests of one judge share; replies are decoded greedily."""

    def __init__(self, judge: JudgeSettings) -> None:
        """Set the form of a judge's requests: its parameters are `max_tokens` and `protocol`."""
        self._model = judge.model
        self._max_tokens = int(dict(judge.parameters)["max_tokens"])
        self._has_schema = judge.protocol == "schema"

    def params(self, query: JudgeQuery) -> CompletionCreateParamsNonStreaming:
        """Return the parameters of a request."""
        params: CompletionCreateParamsNonStreaming = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": query.system},
                {"role": "user", "content": query.user},
            ],
            "max_tokens": self._max_tokens,
            "temperature": 0.0,
        }
        if self._has_schema:
            params["response_format"] = _VERDICT_FORMAT
        return params
