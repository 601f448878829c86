"""What tests send: requests with defaults, and a client that sends each once."""

from typing import cast

import httpx2
from anthropic import Anthropic, BaseModel
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import Request

from tests.support.patience import PATIENCE_S

MODEL = "claude-sonnet-5-5"
VERDICT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "winner": {"type": "string", "enum": ["A", "B", "TIE"]},
    },
    "required": ["reasoning", "winner"],
    "additionalProperties": False,
}


def client_of(url: str) -> Anthropic:
    """Return the real SDK, which sends each request once."""
    timeout = httpx2.Timeout(PATIENCE_S)
    return Anthropic(base_url=url, api_key="test", max_retries=0, timeout=timeout)


def asking(user: str = "Which is better?", /, **fields: object) -> MessageCreateParamsNonStreaming:
    """Return params, complete save for what a test is about."""
    messages = [{"role": "user", "content": user}]
    given = {"model": MODEL, "max_tokens": 2_000, "messages": messages, **fields}
    return cast("MessageCreateParamsNonStreaming", given)


def requests(n: int = 3, **fields: object) -> list[Request]:
    """Return requests of a batch, each with a question of its own."""
    return [
        {"custom_id": f"q-{place}", "params": asking(f"Question {place}?", **fields)}
        for place in range(n)
    ]


def ended(client: Anthropic, batch: MessageBatch) -> MessageBatch:
    """Poll a batch until it has ended."""
    while batch.processing_status != "ended":
        batch = client.messages.batches.retrieve(batch.id)
    return batch


def results(client: Anthropic, batch: MessageBatch) -> list[MessageBatchIndividualResponse]:
    """Return the results of a batch, as they come."""
    return list(client.messages.batches.results(ended(client, batch).id))


def is_whole(came: BaseModel) -> bool:
    """Tell whether an answer has all that the SDK's type requires, which the SDK does not check."""
    return type(came).model_validate(came.to_dict()) == came
