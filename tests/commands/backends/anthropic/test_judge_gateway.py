"""A gateway before Anthropic's API, which bills whatever it is asked."""

from collections import Counter

import pytest

from commands.backends.anthropic.judge import AnthropicJudge
from commands.ports import Answer, NoReply
from ledger.errors import TourneyError
from tests.providers.anthropic.requests import client_of
from tests.providers.billing_gateway import STATUSES, Gateway, Sent
from tests.providers.openai import Json
from tests.support.builders.anthropic import FakeTime, judge_settings, queries
from tests.support.scripted import answered

USAGE: Json = {"input_tokens": 30, "output_tokens": 5}


def well(body: Json, usage: Json = USAGE) -> Sent:
    """Answer as the API does."""
    block = {"type": "text", "text": "VERDICT: A"}
    message = {"type": "message", "model": body["model"], "content": [block], "usage": usage}
    return Sent(200, {**message, "stop_reason": "end_turn"})


def asked_through(gateway: Gateway, n: int = 3) -> tuple[list[Answer], str]:
    """Return the answers to queries, and what was raised."""
    answers = list[Answer]()
    with client_of(gateway.url.removesuffix("/v1")) as client:
        judge = AnthropicJudge(client, judge_settings(), cache="off", n_at_a_time=1)
        try:
            answers.extend(answered(judge, queries(n), clock=FakeTime()))
        except TourneyError as error:
            return answers, str(error)
    return answers, ""


def fates(answers: list[Answer]) -> Counter[str]:
    """Count what became of requests."""
    return Counter(each.fate if isinstance(each, NoReply) else "answered" for each in answers)


@pytest.mark.parametrize("status", STATUSES)
def test_whatever_a_gateway_answers_may_be_billed(status: int) -> None:
    """Its words are not those of the API, which alone knows that it did nothing."""
    failure = Sent(status, {"error": {"message": "no", "type": "gateway_error"}})
    with Gateway(lambda n, body: failure if n == 1 else well(body)) as gateway:
        answers, _ = asked_through(gateway)

    known = fates(answers)
    assert known.total() == len(gateway.asked)
    assert known.keys() <= {"answered", "perhaps billed"}


@pytest.mark.parametrize("status", [403, 408, 409, 424, 498])
def test_one_querys_own_status_ends_no_run(status: int) -> None:
    """It says nothing of the key."""
    failure = Sent(status, {"type": "error", "error": {"type": "odd", "message": "not this one"}})
    with Gateway(lambda _, body: failure if len(gateway.asked) == 1 else well(body)) as gateway:
        answers, why = asked_through(gateway)

    (failed,) = (each for each in answers if isinstance(each, NoReply))
    assert (why, len(answers)) == ("", 3)
    assert "not this one" in failed.detail


@pytest.mark.parametrize("status", [400, 413])
def test_a_rejection_of_everything_burns_nothing(status: int) -> None:
    """Each has an id of its own."""

    def answer(_: int, __: Json) -> Sent:
        words = f"trace {len(gateway.asked):032x} at 03:{len(gateway.asked):02}"
        return Sent(status, {"type": "error", "error": {"type": "odd", "message": words}})

    with Gateway(answer) as gateway:
        answers, why = asked_through(gateway, 40)

    assert "rejected 8 requests in a row" in why
    assert {each.reason for each in answers if isinstance(each, NoReply)} == {"errored"}
    assert len(gateway.asked) == 8


def test_an_error_in_a_success_is_read_as_the_error_that_it_is() -> None:
    """A gateway's own habit; a limit is waited for."""
    limit = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    with Gateway(lambda n, body: Sent(200, limit) if n == 1 else well(body)) as gateway:
        answers, why = asked_through(gateway)

    assert why == ""
    assert fates(answers) == {"answered": 3}
    assert len(gateway.asked) == 6
