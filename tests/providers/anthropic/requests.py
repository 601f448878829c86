"""What tests send: requests with defaults, and a client that sends each once."""

from typing import cast

import httpx2
from anthropic import Anthropic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import Request

from tests.support.patience import PATIENCE_S


def client_of(url: str) -> Anthropic:
    """Return the real SDK, which sends each request once."""
    timeout = httpx2.Timeout(PATIENCE_S)
    return Anthropic(base_url=url, api_key="test", max_retries=0, timeout=timeout)


def asking(user: str = "Which is better?", /, **fields: object) -> MessageCreateParamsNonStreaming:
    """Return params, complete save for what a test is about."""
    messages = [{"role": "user", "content": user}]
    given = {"model": "claude-sonnet-5-5", "max_tokens": 2_000, "messages": messages, **fields}
    return cast("MessageCreateParamsNonStreaming", given)


def requests(n: int = 3) -> list[Request]:
    """Return requests of a batch, each with a question of its own."""
    return [
        {"custom_id": f"q-{place}", "params": asking(f"Question {place}?")} for place in range(n)
    ]


def results(client: Anthropic, batch: MessageBatch) -> list[MessageBatchIndividualResponse]:
    """Return the results of a batch that ends when it is looked at, as they come."""
    while batch.processing_status != "ended":
        batch = client.messages.batches.retrieve(batch.id)
    return list(client.messages.batches.results(batch.id))
