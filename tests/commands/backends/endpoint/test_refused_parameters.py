"""What OpenAI's reasoning models do not take is learnt from their first rejection, and recorded."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from commands.backends.endpoint.askers import EndpointJudge
from commands.backends.endpoint.server import Endpoint
from commands.errors import ConfigurationError
from ledger.events.requests import ParameterRefused, RequestsSubmitted
from ledger.store import Ledger
from projections.tournament.state import Tournament
from tests.providers.billing_gateway import Gateway, Sent, well
from tests.providers.openai import MODEL, Json
from tests.support.builders.commands import types_of
from tests.support.builders.endpoints import generate_at, judge_at
from tests.support.builders.events import judge as judge_settings
from tests.support.contracts import QUERIES

USUAL: Mapping[str, object] = {"type": "invalid_request_error"}
WANTS_ANOTHER_NAME: Json = {
    "message": "Unsupported parameter: 'max_tokens' is not supported with this model."
    " Use 'max_completion_tokens' instead.",
    "param": "max_tokens",
    "code": "unsupported_parameter",
    **USUAL,
}
DOES_NOT_SAMPLE: Json = {
    "message": "Unsupported value: 'temperature' does not support 0 with this model."
    " Only the default (1) value is supported.",
    "param": "temperature",
    "code": "unsupported_value",
    **USUAL,
}
DOES_NOT_THINK: Json = {
    "message": "Unrecognized request argument supplied: reasoning_effort",
    "param": None,
    "code": None,
    **USUAL,
}


def reasoning(_: int, body: Json) -> Sent:
    """Answer as OpenAI does for a reasoning model."""
    if "max_tokens" in body:
        return Sent(400, {"error": WANTS_ANOTHER_NAME})
    if body.get("temperature", 1) != 1:
        return Sent(400, {"error": DOES_NOT_SAMPLE})
    return well(body)


def plain(_: int, body: Json) -> Sent:
    """Answer as a server without reasoning models and seeds, whose framework checks the keys."""
    if "reasoning_effort" in body:
        return Sent(400, {"error": DOES_NOT_THINK})
    if "seed" in body:
        words = "Extra inputs are not permitted"
        return Sent(422, {"detail": [{"loc": ["body", "seed"], "msg": words}]})
    return well(body)


def generate(
    gateway: Gateway,
    ledger: Ledger,
    **options: Any,  # noqa: ANN401  # handed on
) -> tuple[Tournament, list[str]]:
    """Generate an entrant's responses; return the state, and what was told."""
    told = list[str]()
    return generate_at(gateway.url, ledger, told.append, **options).state, told


def judge(gateway: Gateway, ledger: Ledger, **parameters: str) -> Tournament:
    """Judge pairs of responses that are on record."""
    return judge_at(gateway.url, ledger, **parameters).state  # type: ignore[arg-type]  # texts alone


pytestmark = pytest.mark.usefixtures("at_once")


def learnt(state: Tournament) -> list[tuple[str, str | None]]:
    """Return what a server was found not to take, and what is sent instead."""
    return [(each.parameter, each.instead) for each in state.refused_parameters]


NAMES = [("max_tokens", "max_completion_tokens"), ("temperature", None)]


def test_a_reasoning_model_competes_without_a_setting(ledger: Ledger) -> None:
    """The first requests under way are rejected twice, and nothing else is."""
    n_at_a_time = 3
    with Gateway(reasoning) as gateway:
        state, told = generate(gateway, ledger, n_at_a_time=n_at_a_time)

    answered = [each for each in gateway.asked if reasoning(1, each).status == 200]
    assert len(state.responses) == len(answered) == 4
    assert {(each["max_completion_tokens"], "temperature" in each) for each in answered} == {
        (32, False)
    }
    assert len(gateway.asked) <= 4 + 2 * n_at_a_time
    assert learnt(state) == NAMES
    assert [each.partition(f"{gateway.url} ")[2].partition(", in all")[0] for each in told] == [
        "does not take max_tokens: max_completion_tokens is sent instead",
        "does not take temperature: it is left out",
    ]


def test_a_reasoning_model_judges_without_a_setting_and_an_entrant_there_learns_from_it(
    ledger: Ledger,
) -> None:
    """And so does every later command: whatever changes a request is on the ledger before it."""
    with Gateway(reasoning) as gateway:
        state = judge(gateway, ledger)
        n_before, types = len(gateway.asked), types_of(ledger)
        later, told = generate(gateway, ledger)

    assert (len(state.verdicts), n_before, state.lost_usd) == (8, 8 + 2, 0.0)
    assert types.index("ParameterRefused") < types.index("VerdictReceived")
    first = next(each.event for each in ledger.read() if isinstance(each.event, ParameterRefused))
    assert (first.base_url, first.model) == (gateway.url, MODEL)
    assert "Use 'max_completion_tokens' instead" in first.detail
    assert len(gateway.asked) == n_before + 4
    assert (learnt(later), told) == (NAMES, [])


def untold(n: int, body: Json) -> Sent:
    """Answer likewise through a proxy that hides whether the API refused, and which parameter."""
    sent = reasoning(n, body)
    if sent.status == 200:
        return sent
    words = WANTS_ANOTHER_NAME if "max_tokens" in body else DOES_NOT_SAMPLE
    return Sent(400, {"error": {"message": words["message"], "param": "None"}})  # as LiteLLM


def test_a_rejection_that_was_perhaps_billed_is_recorded_before_another_is_sent(
    ledger: Ledger,
) -> None:
    """Each request to the server has a record and a share of the cap of its own."""
    with Gateway(untold) as gateway:
        state = judge(gateway, ledger)
        assert types_of(ledger).count("JudgeQuerySubmitted") == len(gateway.asked) == 8 + 2
        assert state.lost_usd == 2.0
        state, _ = generate(gateway, ledger, model="another")

    assert len(state.verdicts) == 8
    assert learnt(state) == NAMES * 2
    sent = [each.event for each in ledger.read() if isinstance(each.event, RequestsSubmitted)]
    assert sum(len(each.requests) for each in sent) == len(gateway.asked) - 10 == 4 + 2


MAX_TOKENS = ("max_tokens", "max_completion_tokens")
BOTH = "Unsupported parameters for this model: max_tokens and temperature"


def test_two_parameters_that_one_rejection_names_are_both_learnt(ledger: Ledger) -> None:
    """Its words stay the same until the last one is left out."""

    def naming_both(_: int, body: Json) -> Sent:
        if {"max_tokens", "temperature"} & body.keys():
            return Sent(400, {"error": {"message": BOTH}})
        return well(body)

    with Gateway(naming_both) as gateway:
        state, _ = generate(gateway, ledger)

    assert len(gateway.asked) == 4 + 2
    assert (len(state.responses), learnt(state)) == (4, NAMES)


def neither(_: int, body: Json) -> Sent:
    """Take no limit, by whichever name."""
    name = (body.keys() & MAX_TOKENS).pop()
    words = f"Unsupported parameter: '{name}' is not supported."
    return Sent(400, {"error": {"message": words, "param": name, **USUAL}})


def quoting(_: int, __: Json) -> Sent:
    """Reject everything, and quote it."""
    words = "unknown project; the request was max_tokens=32 temperature=0"
    return Sent(400, {"error": {"message": words}})


@pytest.mark.parametrize(("answer", "n_asked"), [(neither, 2), (quoting, 3)])
def test_what_was_left_out_in_vain_is_not_left_out_again(
    ledger: Ledger, answer: Callable[[int, Json], Sent], n_asked: int
) -> None:
    """A gateway that rejects everything is blamed after few requests: a setting must change."""
    with (
        Gateway(answer) as gateway,
        pytest.raises(ConfigurationError, match="choose another model or server"),
    ):
        judge(gateway, ledger)

    assert len(gateway.asked) == n_asked


def test_a_judges_effort_and_an_entrants_seed_are_learnt_likewise(ledger: Ledger) -> None:
    """A framework that checks keys names them in a way of its own."""
    with Gateway(plain) as gateway:
        state = judge(gateway, ledger, reasoning_effort="low")
        assert learnt(state) == [("reasoning_effort", None)]
        state, _ = generate(gateway, ledger, temperature=0.7)

    assert learnt(state) == [("reasoning_effort", None), ("seed", None)]
    assert [each.get("temperature") for each in gateway.asked[-4:]] == [0.7] * 4


TOP_K = "Extra inputs are not permitted: top_k"


@pytest.mark.parametrize(
    ("words", "param"),
    [
        (f"{TOP_K}; the request was max_tokens=32 temperature=0", None),
        (f"{TOP_K}; the request was max_tokens=32 temperature=0", "top_k"),
        ("flagged: 'at an unknown temperature'", None),
    ],
    ids=["quotes the request", "names another parameter", "quotes a prompt"],
)
def test_nothing_is_learnt_from_a_rejection_that_stays(
    ledger: Ledger, words: str, param: str | None
) -> None:
    """The words that it quotes of the request are no parameters that the server refuses."""

    def rejecting(_: int, body: Json) -> Sent:
        if "p2" in json.dumps(body):
            return Sent(400, {"error": {"message": words, "param": param, **USUAL}})
        return well(body)

    with Gateway(rejecting) as gateway:
        state, told = generate(gateway, ledger)

    assert (learnt(state), told) == ([], [])
    answered = [each for each in gateway.asked if rejecting(1, each).status == 200]
    assert len(answered) == 3
    assert all("max_tokens" in each and "temperature" in each for each in answered)
    assert len(gateway.asked) <= (4 if param else 6)


def test_a_server_that_was_found_to_take_neither_name_is_asked_once() -> None:
    """Two ledgers that were merged may say so."""
    with Gateway(neither) as gateway:
        known = [
            ParameterRefused(
                base_url=gateway.url, model=MODEL, parameter=one, instead=other, detail=""
            )
            for one, other in (MAX_TOKENS, MAX_TOKENS[::-1])
        ]
        asked = judge_settings(
            "o", provider="endpoint", model=MODEL, parameters=(("max_tokens", 9.0),)
        )
        judge = EndpointJudge(asked, Endpoint(gateway.url, "judge", None), refused=known)
        judge.ask(QUERIES[0])

    assert len(gateway.asked) == 1
