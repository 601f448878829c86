"""Direct messages, token counts and models, through the real SDK."""

import json
import re
from datetime import timedelta

import pytest
from anthropic import Anthropic, AuthenticationError, BadRequestError, NotFoundError
from anthropic.types import Message, TextBlock, TextBlockParam

from tests.anthropic_api.answers import Asked, Reply
from tests.anthropic_api.prompt import digest_of
from tests.anthropic_api.requests import MODEL, VERDICT_SCHEMA, asking, client_of, is_whole
from tests.anthropic_api.server import FakeAnthropic

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
