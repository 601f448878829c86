"""What the fake enforces and bills, through the real SDK: tests of money rest on it.

How it fails is held by the contract of faults that all batch judges pass, and that it tells what
the API tells by the contract of all batch judges.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import cast

import pytest
from anthropic import Anthropic, BadRequestError
from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.messages.batch_create_params import Request

from projections.verdicts.queries import VERDICT_SCHEMA
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic

WRONG: dict[str, dict[str, object]] = {
    "`temperature`": {"temperature": 0.0},
    "`$.max_tokens`": {"max_tokens": None},
    "messages.0: text content blocks": {"messages": [{"role": "user", "content": ""}]},
    "`array` of length >= 1": {"messages": []},
    "Expected `array`": {"system": 5},
    "'additionalProperties'": {
        "output_config": {
            "format": {
                "type": "json_schema",
                "schema": {**VERDICT_SCHEMA, "additionalProperties": True},
            }
        }
    },
    "Invalid enum value 'utmost'": {"output_config": {"effort": "utmost"}},
}


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a fake."""
    with FakeAnthropic() as fake:
        yield fake


@pytest.fixture
def client(fake: FakeAnthropic) -> Iterator[Anthropic]:
    """Give the SDK, which does not send again by itself."""
    with client_of(fake.url) as client:
        yield client


def asking(**fields: object) -> MessageCreateParamsNonStreaming:
    """Return params, complete save for what a test is about."""
    messages = [{"role": "user", "content": "Which is better?"}]
    given = {"model": "claude-sonnet-5-5", "max_tokens": 2_000, "messages": messages, **fields}
    return cast("MessageCreateParamsNonStreaming", given)


def test_wrong_params_are_refused_at_once_in_a_message_and_at_the_end_in_a_batch(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """A batch of them is accepted, and comes to nothing hours later; it costs nothing."""
    for said, fields in WRONG.items():
        with pytest.raises(BadRequestError) as refused:
            client.messages.create(**asking(), extra_body=fields)
        assert said in str(refused.value.api_message)
    sent: list[Request] = [
        {"custom_id": f"w{place}", "params": asking(**fields)}
        for place, fields in enumerate(WRONG.values())
    ]

    batch = client.messages.batches.create(requests=sent)
    fake.end_batches()
    came = client.messages.batches.results(batch.id)

    assert [each.result.type for each in came] == ["errored"] * len(WRONG)
    assert fake.bill().paid == ()


@pytest.mark.parametrize("custom_id", ["", "a.b", "a b", "é", "x" * 65, "a\n"])
def test_a_custom_id_must_fit_its_pattern(client: Anthropic, custom_id: str) -> None:
    """Ids that are made of names hold dots and slashes before they are looked at."""
    with pytest.raises(BadRequestError, match=r"requests\.0\.custom_id"):
        client.messages.batches.create(requests=[{"custom_id": custom_id, "params": asking()}])


def test_the_models_that_always_think_do_so_before_they_write(client: Anthropic) -> None:
    """A reader of content[0] would take the thinking for the reply."""
    asked = asking(model="claude-opus-5-5", output_config={"effort": "low"})

    message = client.messages.create(**asked)

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.usage.output_tokens_details
    assert message.usage.output_tokens_details.thinking_tokens == 40
    assert Message.model_validate(message.to_dict()) == message  # the SDK does not look


def test_a_prefix_is_written_once_and_lives_for_minutes(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """What caching saves is told by the usage alone; a run that pauses pays again."""
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Judge factuality. " * 200, "cache_control": mark}]
    used = []
    for minutes in (0, 4, 4, 6):
        fake.advance(timedelta(minutes=minutes))
        usage = client.messages.create(**asking(system=system)).usage
        used.append((usage.cache_creation_input_tokens, usage.cache_read_input_tokens))

    assert used == [(900, 0), (0, 900), (0, 900), (900, 0)]
