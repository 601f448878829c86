"""What the Messages API and its batches answer, read as replies."""

import json

import msgspec
import pytest

from commands.backends.anthropic._replies import answer_of, answers_in, page_of
from commands.ports import Answer, NoReply, Reply
from ledger.events.money import Usage
from tests.support.builders.anthropic import MODEL
from tests.support.builders.events import key

USED = {"input_tokens": 7, "output_tokens": 5}


def message(*content: object, **fields: object) -> dict[str, object]:
    """Return a message."""
    given = {"type": "message", "model": MODEL, "content": content, "stop_reason": "end_turn"}
    return {**given, "usage": USED, **fields}


def answered(*content: object, **fields: object) -> Answer:
    """Return what is read out of a message."""
    return answer_of(key("q"), json.dumps(message(*content, **fields)).encode())


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
    assert answer.fate == "perhaps billed"


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"null", b'"text"', b'{"type":"error"}', b'{"type":"mess\xc3']
)
def test_what_is_no_message_is_somebody_elses_answer(body: bytes) -> None:
    """Every query would get the same."""
    with pytest.raises(msgspec.DecodeError):
        answer_of(key("q"), body)


def line(name: str, **result: object) -> bytes:
    """Return a line of results."""
    return json.dumps({"custom_id": name, "result": result}).encode() + b"\n"


def succeeded(name: str, **fields: object) -> bytes:
    """Return a line that holds a message."""
    return line(name, type="succeeded", message=message(text("Both. é"), **fields))


def errored(kind: str, message: str) -> bytes:
    """Return a line that holds an error."""
    return line("q", type="errored", error={"error": {"type": kind, "message": message}})


def answers(results: bytes, n_bytes: int = 7) -> list[Answer]:
    """Return what is read of results that come so many bytes at a time."""
    starts = range(0, len(results), n_bytes)
    chunks = (results[start : start + n_bytes] for start in starts)
    return list(answers_in(chunks, answer_of))


@pytest.mark.parametrize("n_bytes", [1, 7, 10_000])
def test_results_are_read_however_they_come(n_bytes: int) -> None:
    """A line ends where it ends, and not where a packet does."""
    came = answers(succeeded("a") + line("b", type="expired") + succeeded("c").rstrip(), n_bytes)

    assert [(each.query_key, type(each)) for each in came] == [
        *(("a", Reply), ("b", NoReply), ("c", Reply))
    ]


def test_a_stream_may_end_within_a_character() -> None:
    """The rest is read another time."""
    cut = '{"custom_id": "é'.encode()[:-1]

    (came,) = answers(succeeded("a") + cut)

    assert came.query_key == "a"


@pytest.mark.parametrize(
    "result",
    [
        succeeded("q", content=None),
        line("q", type="succeeded"),
        line("q", type="paused"),
        line("q", type="errored", error=None),
        line("q"),
        b'{"custom_id": "q"}',
    ],
)
def test_a_result_that_cannot_be_read_is_its_own_querys_answer(result: bytes) -> None:
    """Without one the batch would never be received."""
    spoilt, sound = answers(result.rstrip() + b"\n" + succeeded("b"))

    assert isinstance(spoilt, NoReply)
    assert (spoilt.query_key, spoilt.reason) == ("q", "errored")
    assert isinstance(sound, Reply)


@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [
        ("invalid_request_error", "prompt is too long", "rejected"),
        ("request_too_large", "too large", "rejected"),
        ("invalid_request_error", "Your credit balance is too low to access it.", "errored"),
        ("billing_error", "Your credit balance is too low to access it.", "errored"),
        ("not_found_error", "model: claude-new", "errored"),
        ("api_error", "\ud83d broke", "errored"),
    ],
)
def test_only_what_is_wrong_with_the_query_itself_is_final(
    kind: str, message: str, reason: str
) -> None:
    """Credit is bought, and a model comes back; half a character the ledger could not hold."""
    (answer,) = answers(errored(kind, message))

    assert isinstance(answer, NoReply)
    assert (answer.reason, answer.detail) == (reason, f"{kind}: {message}".replace("\ud83d", "?"))


def test_a_page_without_batches_is_the_last() -> None:
    """There is none to ask for the next ones by."""
    assert page_of(b'{"data": [], "has_more": true}') == ((), False)


def test_an_error_of_a_result_loses_the_key_that_it_repeats() -> None:
    """It is kept with the query for ever."""
    (answer,) = answers(errored("authentication_error", "no such key: Bearer foreign-canary-77"))

    assert isinstance(answer, NoReply)
    assert "canary" not in answer.detail
