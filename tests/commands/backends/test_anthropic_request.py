"""A query as the Messages API is asked it, and a message as a reply."""

import json

import pytest
from anthropic.types import Message

from commands.backends.anthropic_request import RequestForm, read_message
from commands.settings import CacheTtl
from ledger.events.usage import Usage
from projections.judge_query import VERDICT_SCHEMA
from tests.builders import key
from tests.commands.backends.anthropic_builders import MODEL, judge_settings, queries

(QUERY,) = queries(1)


def form(cache: CacheTtl = "5m", **parameters: str | float) -> RequestForm:
    """Return the form of a judge's requests."""
    return RequestForm.of(judge_settings(**parameters), cache=cache)


def message(
    *content: object, usage: object = None, stop_reason: str | None = "end_turn"
) -> Message:
    """Return a message as the SDK makes one."""
    used = {"input_tokens": 7, "output_tokens": 5}
    return Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": stop_reason,
            "usage": usage or used,
        }
    )


def text(said: str) -> object:
    """Return a text block."""
    return {"type": "text", "text": said}


def test_a_request_holds_what_names_the_query_and_no_sampling() -> None:
    """The newest API refuses a temperature, and effort has another default for each model."""
    params = form().params(QUERY)

    assert params == {
        "model": MODEL,
        "max_tokens": 4096,
        "system": [{"type": "text", "text": QUERY.system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": QUERY.user}],
        "output_config": {"effort": "low"},
    }


@pytest.mark.parametrize(
    ("cache", "mark"),
    [("5m", {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"}), ("off", None)],
)
def test_the_system_text_is_cached_as_long_as_is_wanted(cache: CacheTtl, mark: object) -> None:
    """A cache write that is never read costs more than none."""
    marked = {} if mark is None else {"cache_control": mark}

    system = form(cache).params(QUERY)["system"]

    assert system == [{"type": "text", "text": QUERY.system, **marked}]


def test_the_schema_is_sent_where_it_is_the_protocol() -> None:
    """One schema for all dimensions: another would empty the cache."""
    config = form(protocol="schema", effort="max").params(QUERY)["output_config"]

    assert config == {
        "effort": "max",
        "format": {"type": "json_schema", "schema": dict(VERDICT_SCHEMA)},
    }


def test_an_effort_that_nobody_knows_is_a_fault_of_the_program() -> None:
    """Settings refuse it before."""
    with pytest.raises(ValueError, match="no effort that is known: 'little'"):
        form(effort="little")


def test_the_size_of_a_query_is_that_of_the_json_that_is_sent() -> None:
    """Batches are split below the provider's limit, and U+2028 takes three bytes."""
    query = QUERY._replace(user='ä "\u2028\x00\n')

    n_bytes = form().n_bytes(query)

    sent = json.dumps([form().in_batch(query)] * 2, ensure_ascii=False, separators=(",", ":"))
    assert len(sent.encode()) == 2 * n_bytes + 1


def test_a_reply_is_the_text_between_the_thinking() -> None:
    """Blocks are read by their type: the first is often no text."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}

    reply = read_message(key("q"), message(thinking, text("Both."), thinking, text("VERDICT: A")))

    assert reply.text == "Both.\nVERDICT: A"
    assert (reply.query_key, reply.model, reply.stop_reason) == (key("q"), MODEL, "end_turn")
    assert reply.usage == Usage(n_input=7, n_output=5)


def test_a_message_without_text_or_reason_is_an_empty_reply() -> None:
    """It was paid for; what it is worth is not decided here."""
    reply = read_message(key("q"), message(stop_reason=None))

    assert (reply.text, reply.stop_reason) == ("", "")


def test_cached_tokens_are_told_by_their_life() -> None:
    """An hour's write costs twice the input, five minutes' a quarter more."""
    lives = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    used = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 5,
    }

    told = read_message(key("q"), message(usage={**used, "cache_creation": lives}))
    untold = read_message(key("q"), message(usage=used))

    assert told.usage == Usage(1, 2, 3, 4, 5)
    assert untold.usage == Usage(1, 2, 7, 0, 5)
