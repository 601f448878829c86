"""The judge that asks through the Messages API, against a server that fails as the real one."""

import msgspec
import pytest
from anthropic import Anthropic

from commands.backends.anthropic.messages import AnthropicJudge
from commands.errors import ConfigurationError, NoCredentials, ProviderError, SpendLimitReached
from commands.ports import Answer, Judge, NoReply, Reply
from commands.settings.schema import CacheTtl
from ledger.errors import TourneyError
from tests.providers.anthropic.exchange import Fault, Kind
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.billing_gateway import STATUSES, Gateway, Sent
from tests.support.builders.anthropic import CANARY, MODEL, judge_settings, queries, told_of
from tests.support.builders.clock import Clock
from tests.support.contracts import JudgeContract
from tests.support.scripted import answered

(QUERY,) = queries(1)


def judging(
    client: Anthropic, *, n_at_a_time: int = 1, cache: CacheTtl = "5m", **parameters: str | float
) -> AnthropicJudge:
    """Return a judge."""
    settings = judge_settings(**parameters)
    return AnthropicJudge(client, settings, cache=cache, n_at_a_time=n_at_a_time)


def failure_of(judge: Judge, query: object = QUERY) -> NoReply:
    """Return what became of a request that failed."""
    answer = judge.ask(query)  # type: ignore[arg-type]  # as each test needs
    assert isinstance(answer, NoReply)
    return answer


class TestAnthropicJudge(JudgeContract):
    """The judge of pilots, several queries at a time."""

    @pytest.fixture(autouse=True)
    def _client(self, anthropic_client: Anthropic) -> None:
        self.client = anthropic_client

    def make(self) -> Judge:
        """Return a judge that asks the fake."""
        return judging(self.client, n_at_a_time=3)


@pytest.mark.parametrize(("protocol", "beginning"), [("line", "Both"), ("schema", '{"reasoning":')])
def test_a_reply_is_whole(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, protocol: str, beginning: str
) -> None:
    """Model, stop reason and tokens are what the price is found by."""
    reply = judging(anthropic_client, protocol=protocol).ask(QUERY)

    assert isinstance(reply, Reply)
    assert (reply.model, reply.stop_reason) == (MODEL, "end_turn")
    assert reply.text.startswith(beginning)
    assert reply.usage is not None
    assert reply.usage.n_output == fake_anthropic.bill().total.n_output


@pytest.mark.parametrize(("cache", "written"), [("5m", "5m"), ("1h", "1h"), ("off", None)])
def test_the_first_query_of_a_dimension_writes_the_cache_and_the_next_read_it(
    anthropic_client: Anthropic, cache: CacheTtl, written: str | None
) -> None:
    """What the cache saved is told from these counts."""
    answers = list(answered(judging(anthropic_client, cache=cache), queries(3)))

    used = [each.usage for each in answers if isinstance(each, Reply) and each.usage]
    assert [use.n_cache_write_5m > 0 for use in used] == [written == "5m", False, False]
    assert [use.n_cache_write_1h > 0 for use in used] == [written == "1h", False, False]
    assert [use.n_cache_read > 0 for use in used] == [False] + [written is not None] * 2


@pytest.mark.parametrize(
    ("kind", "fate", "then", "error"),
    [
        ("rate_limited", "refused", "wait", ProviderError),
        ("overloaded", "refused", "wait", ProviderError),
        ("cut_before", "perhaps billed", "go on", None),
        ("cut_after", "perhaps billed", "go on", None),
        ("cut_half", "perhaps billed", "go on", None),
        ("too_late", "perhaps billed", "go on", None),
        ("server_error", "perhaps billed", "go on", None),
        ("error_after", "perhaps billed", "go on", None),
        ("spend_limit", "refused", "stop", SpendLimitReached),
        ("no_credit", "refused", "stop", SpendLimitReached),
        ("page", "perhaps billed", "stop", ProviderError),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_request_is_sent_once_and_its_fate_is_told(
    fake_anthropic: FakeAnthropic,
    anthropic_client: Anthropic,
    kind: Kind,
    fate: str,
    then: str,
    error: type[TourneyError] | None,
) -> None:
    """Nobody pays twice without being told; what others would meet, too, ends the run or waits."""
    fake_anthropic.inject(Fault(endpoint="messages", kind=kind, retry_after_s=7.0))

    failure = failure_of(judging(anthropic_client))

    assert (failure.reason, failure.fate, failure.then) == ("errored", fate, then)
    assert type(failure.error) is (error or type(None))
    assert failure.asked_s == (7.0 if kind == "rate_limited" else None)
    assert failure.is_certain == (kind != "page")
    is_told = all(words in failure.detail for words in ("<html>Sign in", "ANTHROPIC_BASE_URL"))
    assert is_told == (kind == "page")
    assert len(fake_anthropic.bill().posts) == 1
    assert CANARY not in failure.detail + (told_of(failure.error) if failure.error else "")


def test_a_query_that_is_invalid_is_rejected_for_good(anthropic_client: Anthropic) -> None:
    """It would be so at every further attempt; others are not."""
    failure = failure_of(judging(anthropic_client), QUERY._replace(user=""))

    assert (failure.reason, failure.fate, failure.then) == ("rejected", "refused", "go on")
    assert "invalid_request_error" in failure.detail
    assert failure.is_certain


def test_a_provider_that_is_not_there_was_sent_nothing() -> None:
    """So nothing is said of billing."""
    with client_of("http://127.0.0.1:9") as client:
        failure = failure_of(judging(client))

    assert (failure.fate, failure.then) == ("not sent", "ask again")
    assert "ConnectError" in failure.detail
    assert isinstance(failure.error, ProviderError)


def test_a_model_that_is_not_there_stops_the_rest(anthropic_client: Anthropic) -> None:
    """A misspelt name is no property of a query."""
    settings = msgspec.structs.replace(judge_settings(), model="claude-unknown")

    failure = failure_of(AnthropicJudge(anthropic_client, settings, cache="off", n_at_a_time=1))

    assert (failure.fate, failure.then) == ("refused", "stop")
    assert "model: claude-unknown" in failure.detail


def test_an_effort_that_a_model_does_not_know_is_a_fault_of_the_settings() -> None:
    """Every query would be rejected for it."""
    words = "output_config.effort: not supported by this model"
    with Gateway(lambda *_: Sent(400, {"error": {"type": "odd", "message": words}})) as gateway:
        failure = through(gateway)

    assert failure.then == "stop"
    assert isinstance(failure.error, ConfigurationError)
    assert 'set another effort, or effort = "none"' in str(failure.error)


def test_a_wrong_key_stops_at_once() -> None:
    """As if there were none."""
    with FakeAnthropic(api_key="another") as fake, client_of(fake.url) as client:
        failure = failure_of(judging(client))

    assert failure.then == "stop"
    assert isinstance(failure.error, NoCredentials)
    assert "HTTP 401" in failure.detail


def test_a_provider_that_stays_busy_is_left_alone(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """After an hour without an answer; no query is at fault."""
    clock, came = Clock(), list[Answer]()
    fake_anthropic.inject(Fault(endpoint="messages", kind="overloaded", n=1000))

    with pytest.raises(ProviderError, match="run the same command again"):
        came.extend(answered(judging(anthropic_client), queries(3), clock=clock))

    (failure,) = came
    assert isinstance(failure, NoReply)
    assert (failure.reason, failure.fate) == ("errored", "refused")
    assert 3600 < sum(clock.slept_s) < 3800


@pytest.mark.parametrize(("asked_s", "told"), [(90_000.0, "90000 s"), (float("inf"), "inf s")])
def test_a_provider_that_wants_a_day_is_not_waited_for(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, asked_s: float, told: str
) -> None:
    """No query is at fault."""
    clock = Clock()
    fake_anthropic.inject(Fault(endpoint="messages", kind="rate_limited", retry_after_s=asked_s))

    with pytest.raises(ProviderError, match=f"it asks to wait {told}"):
        list(answered(judging(anthropic_client), queries(3), clock=clock))

    assert clock.slept_s == []
    assert len(fake_anthropic.bill().posts) == 1


def through(gateway: Gateway) -> NoReply:
    """Return why nothing does."""
    with client_of(gateway.url.removesuffix("/v1")) as client:
        return failure_of(judging(client))


@pytest.mark.parametrize("status", STATUSES)
def test_whatever_a_gateway_answers_may_be_billed(status: int) -> None:
    """Its words are not those of the API, which alone knows that it did nothing."""
    failure = Sent(status, {"error": {"message": "no", "type": "gateway_error"}})
    with Gateway(lambda *_: failure) as gateway:
        assert through(gateway).fate == "perhaps billed"
        assert len(gateway.asked) == 1


def test_an_error_in_a_success_is_read_as_the_error_that_it_is() -> None:
    """A gateway's own habit; a limit is waited for."""
    limit = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    with Gateway(lambda *_: Sent(200, limit)) as gateway:
        failure = through(gateway)

    assert (failure.fate, failure.then) == ("refused", "wait")
