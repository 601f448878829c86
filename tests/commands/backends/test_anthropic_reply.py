"""A message of the Messages API as a reply."""

import json

import msgspec
import pytest

from commands.backends.anthropic._replies import answer_of
from commands.ports import Answer, NoReply, Reply
from ledger.events.values import Usage
from tests.builders import key
from tests.commands.backends.anthropic_builders import MODEL

USED = {"input_tokens": 7, "output_tokens": 5}


def answered(*content: object, **fields: object) -> Answer:
    """Return what is read out of a message."""
    given = {
        "type": "message",
        "model": MODEL,
        "content": content,
        "stop_reason": "end_turn",
        "usage": USED,
        **fields,
    }
    return answer_of(key("q"), json.dumps(given).encode())


def replied(*content: object, **fields: object) -> Reply:
    """Return what is read out of a message that is sound."""
    reply = answered(*content, **fields)
    assert isinstance(reply, Reply)
    return reply


def text(said: str) -> object:
    """Return a text block."""
    return {"type": "text", "text": said}


def test_a_reply_is_the_text_between_the_thinking() -> None:
    """Blocks are read by their type: the first is often no text."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}

    reply = replied(thinking, text("Both."), thinking, text("VERDICT: A"))

    assert reply.text == "Both.\nVERDICT: A"
    assert (reply.query_key, reply.model, reply.stop_reason) == (key("q"), MODEL, "end_turn")
    assert reply.usage == Usage(n_input=7, n_output=5)


def test_a_message_without_text_or_reason_is_an_empty_reply() -> None:
    """It was paid for; what it is worth is not decided here."""
    reply = replied(stop_reason=None)

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

    told = replied(usage={**used, "cache_creation": lives})
    untold = replied(usage=used)

    assert told.usage == Usage(1, 2, 3, 4, 5)
    assert untold.usage == Usage(1, 2, 7, 0, 5)


def test_half_a_character_is_replaced() -> None:
    """JSON can hold it and no ledger can; the rest of the reply is paid for."""
    assert replied(text("\ud83d Both. \U0001f600")).text == "? Both. \U0001f600"


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None},
        {"content": [{"text": "no type"}]},
        {"model": None},
        {"usage": None},
        {"usage": {**USED, "input_tokens": None}},
        {"usage": {**USED, "output_tokens": -5}},
    ],
)
def test_a_message_that_cannot_be_read_may_be_asked_for_again(fields: dict[str, object]) -> None:
    """It is one query's misfortune, and no other's."""
    answer = answered(**fields)

    assert isinstance(answer, NoReply)
    assert answer.reason == "errored"
    assert "cannot be decoded (" in answer.detail
    assert answer.detail.endswith("it may have been billed")


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"null", b'"text"', b'{"type":"error"}', b'{"type":"mess\xc3']
)
def test_what_is_no_message_is_somebody_elses_answer(body: bytes) -> None:
    """Every query would get the same."""
    with pytest.raises(msgspec.DecodeError):
        answer_of(key("q"), body)
