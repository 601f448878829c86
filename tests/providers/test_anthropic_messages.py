"""Direct messages, token counts and models, through the real SDK, and what is refused."""

import json
import re
from datetime import timedelta

import pytest
from anthropic import (
    Anthropic,
    AuthenticationError,
    BadRequestError,
    ContentTooLargeError,
    NotFoundError,
    RateLimitError,
)
from anthropic.types import Message, TextBlock, TextBlockParam
from anthropic.types.messages.batch_create_params import Request

from tests.providers.anthropic.errors import Limits
from tests.providers.anthropic.messages import Asked, Reply
from tests.providers.anthropic.prompt import digest_of
from tests.providers.anthropic.requests import (
    MODEL,
    VERDICT_SCHEMA,
    asking,
    client_of,
    ended,
    is_whole,
    requests,
    results,
)
from tests.providers.anthropic.server import FakeAnthropic

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


RUBRIC = "Judge factuality. " * 200  # 900 tokens, above the minimum of the newest models


def text_of(message: Message) -> str:
    """Return what a message says; its thinking, if any, comes before."""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def rubric(ttl: str = "5m", text: str = RUBRIC) -> list[TextBlockParam]:
    """Return a system prompt that is to be cached."""
    mark = {"type": "ephemeral", "ttl": ttl}
    return [{"type": "text", "text": text, "cache_control": mark}]  # type: ignore[typeddict-item]


def test_a_judge_gives_the_same_verdict_to_the_same_question(client: Anthropic) -> None:
    """A rerun through the fake must be able to end as the first run did."""
    first = client.messages.create(**asking())
    second = client.messages.create(**asking())

    assert re.search(r"\n\nVERDICT: (A|B|TIE)$", text_of(first))
    assert text_of(second) == text_of(first)
    assert second.id != first.id
    assert first.stop_reason == "end_turn"
    assert is_whole(first)


def test_usage_is_counted_in_quarters_of_characters(client: Anthropic) -> None:
    """Costs that tests compute must be computable by hand."""
    message = client.messages.create(**asking("x" * 401))
    counted = client.messages.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "x" * 401}]
    )

    assert message.usage.input_tokens == counted.input_tokens == 101
    assert message.usage.output_tokens == -(-len(text_of(message)) // 4)
    assert message.usage.service_tier == "standard"


def test_a_reply_follows_its_schema(client: Anthropic) -> None:
    """Structured outputs are what a judge is asked for."""
    wanted = {"format": {"type": "json_schema", "schema": VERDICT_SCHEMA}, "effort": "low"}

    message = client.messages.create(**asking(output_config=wanted))
    said = json.loads(text_of(message))

    assert list(said) == ["reasoning", "winner"]
    assert said["winner"] in {"A", "B", "TIE"}


def test_another_model_may_answer() -> None:
    """What a test is about decides what is replied."""

    def echo(asked: Asked) -> Reply:
        return Reply(f"{asked.model}|{asked.system}|{asked.user}", "stop_sequence")

    with FakeAnthropic(answering=echo) as fake, client_of(fake.url) as client:
        message = client.messages.create(**asking("hello", system="Be brief."))

    assert text_of(message) == f"{MODEL}|Be brief.|hello"
    assert message.stop_reason == "stop_sequence"


def test_the_models_that_always_think_do_so_before_they_write(client: Anthropic) -> None:
    """A reader of content[0] would take the thinking for the reply."""
    asked = asking(model="claude-opus-5-5", output_config={"effort": "low"})

    message = client.messages.create(**asked)

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.usage.output_tokens_details
    assert message.usage.output_tokens_details.thinking_tokens == 40
    assert is_whole(message)


def test_a_reply_ends_at_max_tokens(client: Anthropic) -> None:
    """It is paid for, and its verdict is missing."""
    message = client.messages.create(**asking(max_tokens=5))

    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 5
    assert len(text_of(message)) == 20


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_a_prefix_is_written_once_and_then_read(client: Anthropic, ttl: str) -> None:
    """What caching saves is told by the usage alone."""
    first = client.messages.create(**asking("one", system=rubric(ttl))).usage
    second = client.messages.create(**asking("another", system=rubric(ttl))).usage

    assert first.cache_creation
    assert first.cache_creation.to_dict() == {
        "ephemeral_5m_input_tokens": 900 if ttl == "5m" else 0,
        "ephemeral_1h_input_tokens": 900 if ttl == "1h" else 0,
    }
    assert (first.cache_creation_input_tokens, first.cache_read_input_tokens) == (900, 0)
    assert (second.cache_creation_input_tokens, second.cache_read_input_tokens) == (0, 900)
    assert (first.input_tokens, second.input_tokens) == (1, 2)


def test_a_prefix_lives_five_minutes_after_its_last_use(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """A run that pauses pays for the rubric again."""
    read = []
    for minutes in (0, 4, 4, 6):
        fake.advance(timedelta(minutes=minutes))
        usage = client.messages.create(**asking(system=rubric())).usage
        read.append(usage.cache_read_input_tokens)

    assert read == [0, 900, 900, 0]


def test_a_prefix_below_the_minimum_is_not_cached(client: Anthropic) -> None:
    """The API says nothing of it; only the usage does."""
    usage = client.messages.create(**asking(system=rubric(text="Be fair. " * 20))).usage

    assert usage.cache_creation_input_tokens == 0
    assert usage.input_tokens == 45 + 4


def test_a_model_tells_what_it_can_do(client: Anthropic) -> None:
    """Whether a judge takes a schema is asked, not remembered."""
    model = client.models.retrieve(MODEL)

    assert model.capabilities
    assert model.capabilities.structured_outputs.supported
    assert model.line == "sonnet"
    assert is_whole(model)
    with pytest.raises(NotFoundError):
        client.models.retrieve("claude-none")


def test_a_message_is_billed_once(fake: FakeAnthropic, client: Anthropic) -> None:
    """The bill names a request by the digest of its params."""
    message = client.messages.create(**asking())
    bill = fake.bill()

    assert bill.n_paid_by_digest == {digest_of({**asking()}): 1}
    assert bill.total.n_output == message.usage.output_tokens
    assert [call.status for call in bill.posts] == [200]


def test_only_the_right_key_is_taken_and_none_is_kept() -> None:
    """A canary key must be found nowhere, not in the fake's books either."""
    with FakeAnthropic(api_key="canary") as fake, client_of(fake.url) as client:
        with pytest.raises(AuthenticationError):
            client.messages.create(**asking())
        client.with_options(api_key="canary").messages.create(**asking())

        assert "canary" not in repr(fake.bill())


@pytest.mark.parametrize("version", ["", "2031-01-01"])
def test_a_version_must_be_one_there_is(client: Anthropic, version: str) -> None:
    """What the API takes depends on it."""
    with pytest.raises(BadRequestError, match="anthropic-version"):
        client.messages.create(**asking(), extra_headers={"anthropic-version": version})
