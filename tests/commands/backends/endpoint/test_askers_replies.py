"""Completions as many makers' servers write them, and what is taken from each."""

import json
from collections.abc import Mapping, Sequence

import pytest

from commands.backends.endpoint.askers import reply_of, text_of
from commands.ports import GeneratedText
from ledger.events.money import Usage
from tests.providers.openai import MODEL
from tests.support.builders.events import key
from tests.support.contracts import QUERIES

QUERY = QUERIES[0]


def completion(
    message: Mapping[str, object], finish_reason: str | None = "stop", usage: object = None
) -> bytes:
    """Return a completion with a message, by default with no word on tokens."""
    choice = {"message": message, "finish_reason": finish_reason}
    return json.dumps({"model": MODEL, "choices": [choice], "usage": usage}).encode()


def text_with(
    message: Mapping[str, object], finish_reason: str = "stop", stop: Sequence[str] = ()
) -> GeneratedText:
    """Return an entrant's text."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    body = completion(message, finish_reason, usage)
    text = text_of(key("response"), body, elapsed_s=0.5, stop=stop)
    assert isinstance(text, GeneratedText)
    return text


PLAIN = {"prompt_tokens": 70, "completion_tokens": 2}
WROTE = {"cached_tokens": 10, "cache_write_tokens": 50}  # OpenAI bills a surcharge since GPT-5.6


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        (None, None),  # not known, which is not the same as none
        (PLAIN | {"prompt_tokens": -1}, None),
        ({"prompt_tokens": 70.0, "completion_tokens": 2.0}, Usage(70, 2)),
        (PLAIN | {"prompt_tokens_details": None}, Usage(70, 2)),
        (PLAIN | {"prompt_tokens_details": {}}, Usage(70, 2)),
        (PLAIN | {"prompt_tokens_details": {"cached_tokens": None}}, Usage(70, 2)),
        (PLAIN | {"prompt_tokens_details": {"cached_tokens": 99}}, Usage(0, 2, n_cache_read=70)),
        (PLAIN | {"prompt_tokens_details": WROTE}, Usage(10, 2, 50, n_cache_read=10)),
        (PLAIN | {"prompt_cache_hit_tokens": 64}, Usage(6, 2, n_cache_read=64)),  # DeepSeek
        # thinking: Google counts it in the total alone, others among the completion's tokens
        ({"prompt_tokens": 21, "completion_tokens": 2, "total_tokens": 83}, Usage(21, 62)),
        ({"prompt_tokens": 21, "completion_tokens": 62, "total_tokens": 83}, Usage(21, 62)),
    ],
)
def test_servers_count_in_many_ways_or_not_at_all(told: object, usage: Usage | None) -> None:
    """Each token is paid for once: read from a cache, written to it, thought, or plain."""
    body = completion({"content": "VERDICT: A"}, usage=told)

    assert reply_of(QUERY.query_key, body).usage == usage


@pytest.mark.parametrize(
    "message",
    [
        {"content": "VERDICT: A", "reasoning_content": "VERDICT: B?"},  # DeepSeek, vLLM
        {"content": "VERDICT: A", "reasoning": "VERDICT: B?"},  # OpenRouter, newer vLLM
        {
            "content": [  # Mistral
                {"type": "thinking", "thinking": [{"type": "text", "text": "VERDICT: B?"}]},
                {"type": "text", "text": "VERDICT"},
                {"type": "text", "text": ": A"},
            ]
        },
    ],
    ids=["reasoning_content", "reasoning", "parts"],
)
def test_reasoning_is_not_part_of_a_reply(message: dict[str, object]) -> None:
    """A verdict that was considered and dropped must not be read for the verdict."""
    assert reply_of(QUERY.query_key, completion(message)).text == "VERDICT: A"
    assert text_with(message).text == "VERDICT: A"


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [
        *(("length", "max_tokens"), ("model_length", "max_tokens"), ("stop", "end_turn")),
        *(("content_filter", "refusal"), ("abort", "abort"), (None, "")),
    ],
)
def test_the_end_of_a_reply_is_told_in_one_language(
    finish_reason: str | None, stop_reason: str
) -> None:
    """Truncated, refused and unreadable replies are counted apart; reasoning alone is no reply."""
    body = completion({"content": None, "reasoning_content": "Let me see."}, finish_reason)

    reply = reply_of(QUERY.query_key, body)

    assert (reply.text, reply.stop_reason) == ("", stop_reason)


@pytest.mark.parametrize(
    "message",
    [{"content": None, "refusal": "No."}, {"content": [{"type": "refusal", "refusal": "No."}]}],
    ids=["field", "part"],
)
def test_a_refusal_is_told_apart_from_an_answer(message: dict[str, object]) -> None:
    """It is paid for, counted apart, and not asked again."""
    reply = reply_of(QUERY.query_key, completion(message))

    assert (reply.text, reply.stop_reason) == ("No.", "refusal")


@pytest.mark.parametrize("key_of_it", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_beside_the_answer(key_of_it: str) -> None:
    """Judges read the answer; what led to it is still on record."""
    answer = text_with({"content": "4", key_of_it: "two and two"})

    assert (answer.text, answer.reasoning) == ("4", "two and two")


@pytest.mark.parametrize(
    ("finish_reason", "content", "text"),
    [
        ("stop_sequence", "4\n\nQ:", "4"),
        ("stop_sequence", "4", "4"),
        ("eos_token", "4\n\nQ:", "4\n\nQ:"),
        ("stop", "4\n\nQ:", "4\n\nQ:"),
    ],
)
def test_a_text_that_ended_a_response_of_tgi_is_no_part_of_it(
    finish_reason: str, content: str, text: str
) -> None:
    """It has words of its own for how a response ends, and leaves in what ended it."""
    answer = text_with({"content": content}, finish_reason, ["END", "\n\nQ:"])

    assert (answer.text, answer.finish_reason) == (text, finish_reason)
