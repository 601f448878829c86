"""The judge that asks through the Messages API, against a server that fails as the real one."""

from collections.abc import Collection, Sequence
from itertools import chain
from threading import Thread
from threading import enumerate as threads

import msgspec
import pytest
from anthropic import Anthropic

from commands.asking.pool import THREAD_NAME
from commands.backends.anthropic.judge import AnthropicJudge
from commands.errors import NoCredentials, ProviderError, SpendLimitReached
from commands.ports import Answer, Judge, NoReply, Reply
from commands.settings.schema import CacheTtl
from tests.providers.anthropic.errors import Limits
from tests.providers.anthropic.exchange import Fault, Kind, Shares
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import (
    CANARY,
    MODEL,
    FakeTime,
    judge_settings,
    queries,
    told_of,
)
from tests.support.contracts import JudgeContract
from tests.support.scripted import answer_groups, answered


def judging(
    client: Anthropic,
    *,
    n_at_a_time: int = 1,
    clock: FakeTime | None = None,
    cache: CacheTtl = "5m",
    **parameters: str | float,
) -> AnthropicJudge:
    """Return a judge by a clock."""
    now, settings = (clock or FakeTime()).now, judge_settings(**parameters)
    return AnthropicJudge(client, settings, cache=cache, n_at_a_time=n_at_a_time, now=now)


def no_replies(answers: Sequence[Answer]) -> list[tuple[str, str]]:
    """Return the reasons and fates of what has no reply."""
    return [(each.reason, each.fate) for each in answers if isinstance(each, NoReply)]


class TestAnthropicJudge(JudgeContract):
    """The judge of pilots, several queries at a time."""

    @pytest.fixture(autouse=True)
    def _client(self, anthropic_client: Anthropic) -> None:
        self.client = anthropic_client

    def make(self) -> Judge:
        """Return a judge that asks the fake."""
        return judging(self.client, n_at_a_time=3)


def test_a_reply_is_whole(fake_anthropic: FakeAnthropic, anthropic_client: Anthropic) -> None:
    """Model, stop reason and tokens are what the price is found by."""
    (reply,) = answered(judging(anthropic_client), queries(1))

    bill = fake_anthropic.bill()
    assert isinstance(reply, Reply)
    assert reply.usage is not None
    assert (reply.model, reply.stop_reason) == (MODEL, "end_turn")
    assert reply.text.splitlines()[-1].startswith("VERDICT: ")
    assert reply.usage.n_output == bill.total.n_output
    assert reply.usage.n_cache_write_5m == bill.total.n_written_5m > 0


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


def test_a_reply_by_the_schema_is_json(anthropic_client: Anthropic) -> None:
    """The other protocol."""
    (reply,) = answered(judging(anthropic_client, protocol="schema"), queries(1))

    assert isinstance(reply, Reply)
    assert reply.text.startswith('{"reasoning":')


@pytest.mark.parametrize(
    ("shares", "stop_reason"),
    [(Shares(refused=1.0), "refusal"), (Shares(truncated=1.0), "max_tokens")],
)
def test_a_useless_reply_is_a_reply(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, shares: Shares, stop_reason: str
) -> None:
    """It is paid for: what it is worth is decided elsewhere."""
    fake_anthropic.inject(shares=shares)

    (reply,) = answered(judging(anthropic_client), queries(1))

    assert isinstance(reply, Reply)
    assert reply.stop_reason == stop_reason
    assert reply.usage is not None


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded"])
def test_what_was_not_answered_is_asked_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """Each is paid for once, however often it was sent."""
    clock = FakeTime()
    asked_s = 7 if kind == "rate_limited" else None
    fake_anthropic.inject(Fault(endpoint="messages", kind=kind, n=3, retry_after_s=asked_s))

    answers = list(answered(judging(anthropic_client, clock=clock), queries(2), clock=clock))

    assert all(isinstance(answer, Reply) for answer in answers)
    assert set(fake_anthropic.bill().n_paid_by_digest.values()) == {1}
    assert len(clock.slept) == 3
    assert (clock.slept == [7.0] * 3) == (kind == "rate_limited")


@pytest.mark.parametrize("kind", ["cut_after", "cut_before", "cut_half", "too_late"])
@pytest.mark.usefixtures("impatient")
def test_what_may_have_been_answered_is_not_asked_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """Nobody pays twice without being told; asking again is the user's to decide."""
    fake_anthropic.inject(Fault(endpoint="messages", kind=kind))

    answers = list(answered(judging(anthropic_client), queries(2)))

    assert no_replies(answers) == [("errored", "perhaps billed")]
    assert len(fake_anthropic.bill().posts) == 2


def test_a_gateway_that_gave_up_is_not_asked_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """The provider behind it may have answered."""
    fake_anthropic.inject(shares=Shares(errored=1.0, error_type="timeout_error"))

    answers = list(answered(judging(anthropic_client), queries(1)))

    assert no_replies(answers) == [("errored", "perhaps billed")]
    assert len(fake_anthropic.bill().posts) == 1


def test_a_query_that_is_invalid_is_rejected_for_good(anthropic_client: Anthropic) -> None:
    """It would be so at every further attempt; others are not."""
    wrong, right = queries(2)

    answers = list(answered(judging(anthropic_client), [wrong._replace(user=""), right]))

    assert no_replies(answers) == [("rejected", "refused")]
    assert "invalid_request_error" in str(answers)
    assert len(answers) == 2


@pytest.mark.parametrize("kind", ["server_error", "error_after"])
def test_a_query_that_errs_is_left_to_another_command(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """It may have been answered, and billed; the others may go well."""
    fake_anthropic.inject(Fault(endpoint="messages", kind=kind))

    answers = list(answered(judging(anthropic_client), queries(2)))

    assert no_replies(answers) == [("errored", "perhaps billed")]
    assert len(answers) == len(fake_anthropic.bill().posts) == 2


def test_a_provider_that_is_busy_for_minutes_is_waited_for(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A run of hours must not end at the first full minute."""
    clock = FakeTime()
    fake_anthropic.inject(Fault(endpoint="messages", kind="overloaded", n=20))

    answers = list(answered(judging(anthropic_client, clock=clock), queries(3), clock=clock))

    assert no_replies(answers) == []
    assert sum(clock.slept) > 300
    assert set(fake_anthropic.bill().n_paid_by_digest.values()) == {1}


def test_a_provider_that_stays_busy_is_left_alone(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """After an hour without an answer; no query is at fault."""
    clock, came = FakeTime(), list[Answer]()
    fake_anthropic.inject(Fault(endpoint="messages", kind="overloaded", n=1000))

    with pytest.raises(ProviderError, match="run the same command again"):
        came.extend(answered(judging(anthropic_client, clock=clock), queries(3), clock=clock))

    assert no_replies(came) == [("errored", "refused")]
    assert 3600 < sum(clock.slept) < 3800


def test_a_wait_of_hours_is_kept_and_told(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """Nobody would know why nothing happens."""
    clock, told = FakeTime(), list[str]()
    fake_anthropic.inject(Fault(endpoint="messages", kind="rate_limited", retry_after_s=7200.0))

    judge = judging(anthropic_client, clock=clock)
    groups = answer_groups(judge, queries(2), pace=clock.pace(), tell=told.append)
    answers = [*chain.from_iterable(groups)]

    assert no_replies(answers) == []
    assert clock.slept == [7200.0]
    (line,) = told
    assert "takes no more requests now: waiting 7200 s, until" in line


@pytest.mark.parametrize(("asked_s", "told"), [(90_000.0, "90000 s"), (float("inf"), "inf s")])
def test_a_provider_that_wants_a_day_is_not_waited_for(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, asked_s: float, told: str
) -> None:
    """No query is at fault."""
    clock = FakeTime()
    fake_anthropic.inject(Fault(endpoint="messages", kind="rate_limited", retry_after_s=asked_s))

    with pytest.raises(ProviderError, match=f"it asks to wait {told}"):
        list(answered(judging(anthropic_client, clock=clock), queries(3), clock=clock))

    assert clock.slept == []
    assert len(fake_anthropic.bill().posts) == 1


def test_a_page_in_place_of_a_message_stops_the_rest(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A proxy that wants a login would send it to every query."""
    fake_anthropic.inject(Fault(endpoint="messages", kind="page", n=100))

    with pytest.raises(ProviderError, match=r"<html>Sign in.*correct ANTHROPIC_BASE_URL"):
        list(answered(judging(anthropic_client), queries(3)))

    assert len(fake_anthropic.bill().posts) == 1


def test_a_provider_that_is_not_there_is_an_error() -> None:
    """Nothing was sent, so nothing is said of billing."""
    with client_of("http://127.0.0.1:9") as client, pytest.raises(ProviderError) as caught:
        list(answered(judging(client), queries(3)))

    assert "ConnectError" in str(caught.value)
    assert "billed" not in str(caught.value)


@pytest.mark.parametrize("kind", ["spend_limit", "no_credit"])
def test_a_spend_limit_stops_at_once(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """What was answered before is kept; nothing is sent a second time, or given up for good."""
    fake_anthropic.inject(Fault(endpoint="messages", kind=kind, skip=2, n=100))
    came: list[Answer] = []

    with pytest.raises(SpendLimitReached) as caught:
        came.extend(answered(judging(anthropic_client), queries(5)))

    assert [isinstance(each, Reply) for each in came] == [True, True, False]
    assert no_replies(came) == [("errored", "refused")]
    assert len(fake_anthropic.bill().posts) == 3
    assert CANARY not in told_of(caught.value)


def test_a_model_that_is_not_there_stops_the_rest(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A misspelt name is no property of a query."""
    settings = msgspec.structs.replace(judge_settings(), model="claude-unknown")
    judge = AnthropicJudge(anthropic_client, settings, cache="off", n_at_a_time=1)

    with pytest.raises(ProviderError, match="model: claude-unknown"):
        list(answered(judge, queries(3)))

    assert len(fake_anthropic.bill().posts) == 1


def test_a_wrong_key_stops_at_once() -> None:
    """As if there were none."""
    with FakeAnthropic(api_key="another") as fake, client_of(fake.url) as client:
        with pytest.raises(NoCredentials, match="HTTP 401"):
            list(answered(judging(client), queries(3)))

        assert len(fake.bill().calls) == 1


def test_requests_wait_when_the_provider_says_that_none_is_left() -> None:
    """Asking on would be refused, and too many refusals are held against the key."""
    clock = FakeTime()

    with (
        FakeAnthropic(limits=Limits(n_requests_per_minute=2), now=clock.now) as fake,
        client_of(fake.url) as client,
    ):
        answers = list(answered(judging(client, clock=clock), queries(5), clock=clock))
        statuses = {call.status for call in fake.bill().calls}

    assert len(answers) == 5
    assert statuses == {200}
    assert clock.slept == [60.0, 60.0]


def asking_now(others: Collection[Thread]) -> list[Thread]:
    """Return the threads that ask, but for those that were there before."""
    return [each for each in threads() if each not in others and each.name == THREAD_NAME]
