"""A judge on a server of one's own, through the real client and a server on loopback."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO

import httpx2
import openai
import pytest

from commands.backends.endpoint.askers import EndpointJudge
from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError, ProviderError, SpendLimitReached
from commands.judging.judge import JudgeTask, judge_open, resumed
from commands.ports import Answer, Judge, NoReply, Reply, no_progress
from commands.spending.budget import PriceUnknown, at_risk_usd
from ledger.errors import TourneyError
from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from ledger.store import Ledger
from tests.providers.openai import MODEL, FakeOpenAI, Fault, Said
from tests.support.builders.commands import record_answers
from tests.support.builders.events import STREAM, opened, prompt
from tests.support.builders.events import judge as judge_settings
from tests.support.builders.money import FlatRate
from tests.support.contracts import QUERIES, JudgeContract

CANARY = "sk-canary-9c1f"
QUERY = QUERIES[0]


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """Give a server on which nothing goes wrong."""
    with FakeOpenAI() as fake:
        yield fake


def served(url: str, *, model: str = MODEL, n_at_a_time: int = 1, **fields: object) -> Judge:
    """Return a judge on a server."""
    judge = JudgeSettings(JudgeId("steady"), "endpoint", model, (("max_tokens", 64.0),))
    given = {"api_key": None, "model": f"judge {model!r}", "n_at_a_time": n_at_a_time, **fields}
    return EndpointJudge(judge, Endpoint(url, **given))  # type: ignore[arg-type]  # as needed


def failure_of(judge: Judge) -> NoReply:
    """Return what became of a request that failed."""
    answer = judge.ask(QUERY)
    assert isinstance(answer, NoReply)
    return answer


class TestEndpointJudge(JudgeContract):
    """The judge on a server that answers every query, several at a time."""

    @pytest.fixture(autouse=True)
    def _server(self, fake: FakeOpenAI) -> None:
        self._url = fake.url

    def make(self) -> Judge:
        """Return a judge that asks three queries at a time."""
        return served(self._url, n_at_a_time=3)


def test_a_reply_is_kept_with_its_tokens_and_the_name_that_the_server_gave() -> None:
    """What was read from the server's cache is not input a second time."""
    with FakeOpenAI(lambda _: Said("VERDICT: B", n_cached=5)) as fake:
        reply = served(fake.url).ask(QUERY)

    n_prompt = len(json.dumps(fake.traffic.asked[0]["messages"])) // 4
    usage = Usage(n_input=n_prompt - 5, n_output=2, n_cache_read=5)
    assert reply == Reply(QUERY.query_key, "VERDICT: B", "end_turn", MODEL, usage)


PAGE = "does not reply like OpenAI's API"


@pytest.mark.parametrize(
    ("kind", "told", "error"),
    [
        ("bad_request", ("rejected", "refused", "go on", "HTTP 400: told to fail"), None),
        ("too_large", ("rejected", "refused", "go on", "HTTP 413: told to fail"), None),
        ("server_error", ("errored", "perhaps billed", "go on", "HTTP 500: told to"), None),
        ("too_late", ("errored", "perhaps billed", "go on", "took too long to answer"), None),
        ("cut", ("errored", "perhaps billed", "go on", "no answer from http://127"), None),
        ("cut_half", ("errored", "perhaps billed", "go on", "no answer from http://127"), None),
        ("rate_limited", ("errored", "refused", "wait", "HTTP 429"), ProviderError),
        ("no_credit", ("errored", "perhaps billed", "stop", "HTTP 400"), SpendLimitReached),
        ("no_quota", ("errored", "refused", "stop", "HTTP 429"), SpendLimitReached),
        ("unpaid", ("errored", "perhaps billed", "stop", "HTTP 402"), SpendLimitReached),
        ("page", ("errored", "perhaps billed", "stop", PAGE), ProviderError),
        ("half_json", ("errored", "perhaps billed", "stop", PAGE), ProviderError),
        ("no_choices", ("errored", "perhaps billed", "stop", PAGE), ProviderError),
        ("no_utf8", ("errored", "perhaps billed", "stop", PAGE), ProviderError),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_request_is_sent_once_and_its_fate_is_told(
    fake: FakeOpenAI, kind: str, told: tuple[str, ...], error: type[TourneyError] | None
) -> None:
    """Nobody pays twice without being told; what others would meet, too, ends the run or waits."""
    fake.inject(Fault(kind))

    failure = failure_of(served(fake.url))

    *expected, words = told
    assert [failure.reason, failure.fate, failure.then] == expected
    assert words in failure.detail
    assert type(failure.error) is (error or type(None))
    assert failure.is_certain == (words != PAGE and failure.reason != "rejected")
    assert len(fake.traffic.asked) == 1


def test_a_server_has_as_long_as_its_settings_say() -> None:
    """For each part of an answer; some judges think for minutes."""
    with Endpoint("http://localhost", "judge", None, timeout_s=7.0).client() as client:
        assert client.timeout == openai.Timeout(7.0, connect=7.0)


@pytest.mark.parametrize("cause", [httpx2.ConnectTimeout("no"), httpx2.ConnectError("no")])
def test_a_request_that_never_left_is_not_billed(cause: Exception) -> None:
    """The client calls a connection that takes too long a timeout, too."""
    error = openai.APITimeoutError(httpx2.Request("POST", "http://localhost"))
    error.__cause__ = cause

    assert Endpoint("http://localhost", "judge", None).failure_of(error).fate == "not sent"


def test_a_server_without_a_price_goes_on_without_a_cap_only(
    fake: FakeOpenAI, ledger: Ledger
) -> None:
    """One of your own is free, whatever it fails on; a cap on it could not be kept."""
    asked = judge_settings("steady", provider="endpoint", model=MODEL)
    prompts = [prompt(f"p{each}") for each in range(4)]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=prompts, judges=[asked]))
    wanted = [each.prompt_id for each in prompts]
    free = JudgeTask(asked, wanted, 0, FlatRate(None))
    fake.inject(Fault("server_error"))

    done = judge_open(recorder, free, lambda *_: served(fake.url), on_progress=no_progress)
    capped = resumed(recorder, replace(free, max_usd=1.0))
    with pytest.raises(PriceUnknown):
        judge_open(recorder, capped, lambda *_: served(fake.url), on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed) == (7, 1)
    assert at_risk_usd(recorder.state) == 0.0


def test_a_server_that_is_not_there_is_named() -> None:
    """Most often it was not started, or listens on another port."""
    with FakeOpenAI() as gone:
        url = gone.url

    failure = failure_of(served(url))

    assert (failure.then, failure.fate) == ("ask again", "not sent")
    assert isinstance(failure.error, ProviderError)
    for words in ("start the server or correct base_url", url, "refused"):
        assert words in failure.detail


@pytest.mark.parametrize(
    ("model", "is_versioned", "told"),
    [
        ("other", True, r"does not have judge 'other' \(.*The model `other`"),
        (MODEL, False, r"correct .* base_url, which often ends in /v1"),
    ],
)
def test_a_model_or_address_that_is_misspelt_is_a_fault_of_the_settings(
    fake: FakeOpenAI, model: str, told: str, *, is_versioned: bool
) -> None:
    """Every query would fail alike."""
    url = fake.url if is_versioned else fake.url.removesuffix("/v1")

    failure = failure_of(served(url, model=model))

    assert failure.then == "stop"
    with pytest.raises(ConfigurationError, match=told):
        raise failure.error or AssertionError


@contextmanager
def everything_logged() -> Iterator[StringIO]:
    """Give what all loggers say in a block."""
    root, log = logging.getLogger(), StringIO()
    handler, level = logging.StreamHandler(log), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield log
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def test_a_key_is_sent_and_never_told() -> None:
    """Logs and errors are what users paste into issues."""
    with FakeOpenAI(api_key=CANARY) as fake, everything_logged() as log:
        answer: Answer = served(fake.url, api_key=CANARY).ask(QUERY)

    assert isinstance(answer, Reply)
    assert fake.traffic.keys == [CANARY]
    assert "chat/completions" in log.getvalue()
    assert CANARY not in log.getvalue()
