"""What is refused, and when: at once, or only as the batch is processed."""

import pytest
from anthropic import (
    Anthropic,
    BadRequestError,
    ContentTooLargeError,
    NotFoundError,
    RateLimitError,
)
from anthropic.types.messages.batch_create_params import Request

from tests.anthropic_api.limits import Limits
from tests.anthropic_api.requests import VERDICT_SCHEMA, asking, client_of, ended, requests, results
from tests.anthropic_api.server import FakeAnthropic

MARK = {"type": "ephemeral"}
MARKED = {"type": "text", "text": "x", "cache_control": MARK}
HOUR = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
OPEN_SCHEMA = {**VERDICT_SCHEMA, "additionalProperties": True}
SIZED_SCHEMA = {"type": "array", "items": {"type": "string", "maxLength": 5}}

WRONG: dict[str, dict[str, object]] = {
    "temperature: Extra inputs": {"temperature": 0.0},
    "top_p: Extra inputs": {"top_p": 0.5},
    "top_k: Extra inputs": {"top_k": 5},
    "tempreature: Extra inputs": {"tempreature": 0.0},
    "max_tokens: Field required": {"max_tokens": None},
    "max_tokens: Input should be greater": {"max_tokens": 0},
    "max_tokens: 200000 > 128000": {"max_tokens": 200_000},
    "max_tokens: Input should be a valid integer": {"max_tokens": "many"},
    "model: Field required": {"model": None},
    "messages: Field required": {"messages": None},
    "messages: at least one": {"messages": []},
    "messages.0: text content blocks": {"messages": [{"role": "user", "content": ""}]},
    "messages.0.role": {"messages": [{"role": "judge", "content": "x"}]},
    "first message must use": {"messages": [{"role": "assistant", "content": "x"}]},
    "system: Input": {"system": 5},
    "A maximum of 4 blocks": {"system": [MARKED] * 5},
    "must not come after": {"system": [MARKED, HOUR]},
    "'additionalProperties'": {
        "output_config": {"format": {"type": "json_schema", "schema": OPEN_SCHEMA}}
    },
    "property 'maxLength'": {
        "output_config": {"format": {"type": "json_schema", "schema": SIZED_SCHEMA}}
    },
    "output_config.effort": {"output_config": {"effort": "utmost"}},
    "does not take a forced tool": {"tool_choice": {"type": "any"}},
    "thinking: Input": {"thinking": {"type": "aloud"}},
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_params_are_refused_at_once_in_a_message(client: Anthropic, said: str) -> None:
    """One direct request of a batch's shape shows what would err in all of the batch."""
    with pytest.raises(BadRequestError) as refused:
        client.messages.create(**asking(), extra_body=WRONG[said])

    assert said in str(refused.value.api_message)
    assert refused.value.type == "invalid_request_error"
    assert refused.value.request_id


def test_wrong_params_err_in_a_batch_only_when_it_ends(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """A batch of them is accepted, and comes to nothing hours later; it costs nothing."""
    wrong: list[dict[str, object]] = [*WRONG.values(), {"stream": True}, {"speed": "fast"}]
    sent: list[Request] = [
        {"custom_id": f"w{place}", "params": asking(**fields)} for place, fields in enumerate(wrong)
    ]

    batch = client.messages.batches.create(requests=sent)
    came = [each.result for each in results(client, batch)]

    assert len(came) == len(wrong)
    for result in came:
        assert result.type == "errored"
        assert result.error.error.type == "invalid_request_error"
    assert fake.bill().paid == ()


def test_an_older_version_takes_a_temperature(client: Anthropic) -> None:
    """What was run at temperature 0 was run through it."""
    older = {"anthropic-version": "2023-06-01"}

    message = client.messages.create(
        **asking(), extra_body={"temperature": 0.0}, extra_headers=older
    )

    assert message.stop_reason == "end_turn"


@pytest.mark.parametrize("model", ["gpt", "claude-4", "claude-sonnet-5.5"])
def test_a_model_that_is_not_there_is_not_found(client: Anthropic, model: str) -> None:
    """A typing error in a model's name is no reason to send again."""
    with pytest.raises(NotFoundError, match="model: "):
        client.messages.create(**asking(model=model))


@pytest.mark.parametrize("custom_id", ["", "a.b", "a:b", "a/b", "a b", "é", "x" * 65, "a\n"])
def test_a_custom_id_must_fit_its_pattern(client: Anthropic, custom_id: str) -> None:
    """Ids that are made of names hold dots and slashes before they are looked at."""
    with pytest.raises(BadRequestError, match=r"requests\.0\.custom_id"):
        client.messages.batches.create(requests=[{"custom_id": custom_id, "params": asking()}])


def test_a_custom_id_must_be_unique_in_its_batch_only(client: Anthropic) -> None:
    """The same question may come again in another batch."""
    client.messages.batches.create(requests=requests(2))
    client.messages.batches.create(requests=requests(2))

    with pytest.raises(BadRequestError, match="not unique"):
        client.messages.batches.create(requests=requests(1) * 2)


def test_an_empty_batch_is_refused(client: Anthropic) -> None:
    """There is nothing to be asked."""
    with pytest.raises(BadRequestError, match="at least 1 item"):
        client.messages.batches.create(requests=[])


@pytest.mark.parametrize("limits", [Limits(n_batch_requests=2), Limits(n_batch_bytes=300)])
def test_too_large_a_batch_is_refused_whole(limits: Limits) -> None:
    """It is to be cut in pieces before it is sent."""
    with FakeAnthropic(limits=limits) as fake, client_of(fake.url) as client:
        with pytest.raises(ContentTooLargeError) as refused:
            client.messages.batches.create(requests=requests(3))

        assert "request_too_large" in str(refused.value)
        assert client.messages.batches.create(requests=requests(2)).processing_status
        assert len(fake.bill().batches) == 1


def test_requests_a_minute_are_told_and_enforced() -> None:
    """A client that reads the headers need never be refused."""
    limits = Limits(n_requests_per_minute=2)
    with FakeAnthropic(limits=limits) as fake, client_of(fake.url) as client:
        told = client.messages.with_raw_response.create(**asking()).headers
        client.messages.create(**asking())

        with pytest.raises(RateLimitError) as refused:
            client.messages.create(**asking())

    assert told["anthropic-ratelimit-requests-remaining"] == "1"
    assert 0 < float(refused.value.response.headers["retry-after"]) <= 61


def test_more_than_may_be_queued_is_refused() -> None:
    """Batches that have ended make room for others."""
    with (
        FakeAnthropic(limits=Limits(n_queued_requests=4)) as fake,
        client_of(fake.url) as client,
    ):
        first = client.messages.batches.create(requests=requests(3))
        with pytest.raises(RateLimitError):
            client.messages.batches.create(requests=requests(3))
        ended(client, first)

        assert client.messages.batches.create(requests=requests(3)).id != first.id
