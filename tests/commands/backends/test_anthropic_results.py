"""What the API tells of batches, read."""

import json

import pytest

from commands.backends.anthropic._replies import answers_in, page_of
from commands.ports import Answer, NoReply, Reply
from tests.commands.backends.anthropic_builders import MODEL


def line(name: str, **result: object) -> bytes:
    """Return a line of results."""
    return json.dumps({"custom_id": name, "result": result}).encode() + b"\n"


def succeeded(name: str, **fields: object) -> bytes:
    """Return a line that holds a message."""
    used = {"input_tokens": 7, "output_tokens": 5}
    content = [{"type": "text", "text": "Both. é"}]
    given = {"type": "message", "model": MODEL, "content": content, "usage": used, **fields}
    return line(name, type="succeeded", message=given)


def errored(kind: str, message: str) -> bytes:
    """Return a line that holds an error."""
    return line("q", type="errored", error={"error": {"type": kind, "message": message}})


def answers(results: bytes, n_bytes: int = 7) -> list[Answer]:
    """Return what is read of results that come so many bytes at a time."""
    starts = range(0, len(results), n_bytes)
    return list(answers_in(results[start : start + n_bytes] for start in starts))


@pytest.mark.parametrize("n_bytes", [1, 7, 10_000])
def test_results_are_read_however_they_come(n_bytes: int) -> None:
    """A line ends where it ends, and not where a packet does."""
    came = answers(succeeded("a") + line("b", type="expired") + succeeded("c").rstrip(), n_bytes)

    assert [(each.query_key, type(each)) for each in came] == [
        *(("a", Reply), ("b", NoReply), ("c", Reply))
    ]


@pytest.mark.parametrize("foreign", [b"null\n", b'"hello"\n', b"<html>\n", b'{"x": 1}\n', b"\n"])
def test_a_line_that_is_no_result_hides_no_other(foreign: bytes) -> None:
    """What is behind it is paid for."""
    came = answers(succeeded("a") + foreign + succeeded("b"))

    assert [each.query_key for each in came] == ["a", "b"]


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
    ],
)
def test_only_what_is_wrong_with_the_query_itself_is_final(
    kind: str, message: str, reason: str
) -> None:
    """Credit is bought, and a model comes back; the query is as good as before."""
    (answer,) = answers(errored(kind, message))

    assert isinstance(answer, NoReply)
    assert (answer.reason, answer.detail) == (reason, f"{kind}: {message}")


def test_half_a_character_in_an_error_is_replaced() -> None:
    """The ledger could not hold why the query failed."""
    (answer,) = answers(errored("api_error", "\ud83d broke"))

    assert isinstance(answer, NoReply)
    assert answer.detail == "api_error: ? broke"


def test_a_page_without_batches_is_the_last() -> None:
    """There is none to ask for the next ones by."""
    assert page_of(b'{"data": [], "has_more": true}') == ((), False)
