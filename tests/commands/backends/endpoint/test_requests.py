"""A query as chat completions are asked it, one by one or in a batch."""

import pytest

from commands.backends.endpoint.refused_parameters import can_do_without, remedy_of
from commands.backends.endpoint.requests import ChatForm
from commands.judging.panel import Parameters
from ledger.events.registration import JudgeSettings, Provider
from ledger.identity import JudgeId
from projections.verdicts.queries import VERDICT_SCHEMA
from tests.support.contracts import QUERIES

QUERY = QUERIES[0]
TURNS = ({"role": "system", "content": QUERY.system}, {"role": "user", "content": QUERY.user})


def body(provider: Provider = "endpoint", **parameters: str) -> dict[str, object]:
    """Return the request of a judge with these parameters."""
    given: Parameters = (("max_tokens", 64.0), *parameters.items())
    return dict(ChatForm(JudgeSettings(JudgeId("judge"), provider, "model", given)).body(QUERY))


def test_a_plain_request_is_greedy_and_holds_no_more_than_every_server_takes() -> None:
    """Servers reject what they do not know."""
    assert body() == {"model": "model", "max_tokens": 64, "temperature": 0.0, "messages": TURNS}


def test_each_setting_changes_its_own_part_of_the_request() -> None:
    """What is sent is what the judge's digest names."""
    assert body("openai-batch", extra_body='{"temperature":1}', reasoning_effort="high") == {
        "model": "model",
        "max_completion_tokens": 64,
        "temperature": 1,
        "reasoning_effort": "high",
        "messages": TURNS,
    }
    asked = body(protocol="schema", extra_body='{"seed":7,"safe_prompt":true}')
    assert asked.keys() - body().keys() == {"response_format", "seed", "safe_prompt"}
    assert asked["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": VERDICT_SCHEMA},
    }


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "HTTP 400: Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "choose another model or server",
        ),
        (
            "HTTP 400: Unrecognized request argument supplied: reasoning_effort",
            "change or remove effort",
        ),
        ("HTTP 400: response_format is not supported by this server", 'set protocol = "line"'),
        ("HTTP 400: 'max_tokens' is too large: 4096. The prompt has 7000 tokens.", None),
        ("HTTP 400: This content type is not supported.", None),
        ("HTTP 400: Unsupported characters in message: 'When is a seed planted?'", None),
    ],
)
def test_a_rejection_of_every_request_is_told_from_that_of_one(
    message: str, remedy: str | None
) -> None:
    """The one stops the run with the setting to change; the other is about a single prompt."""
    assert remedy_of(message) == remedy


@pytest.mark.parametrize(
    ("name", "message", "can"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.0", True),
        ("reasoning_effort", "Unsupported parameter: 'reasoning_effort'", True),
        ("reasoning_effort", "Unsupported value: 'xhigh' for 'reasoning_effort'", False),
        ("response_format", "response_format is not supported", False),
    ],
)
def test_a_misspelt_effort_is_corrected_and_not_left_out(
    name: str, message: str, *, can: bool
) -> None:
    """Without it, another judge would answer, under the name of the one that was asked for."""
    assert can_do_without(name, message) == can
