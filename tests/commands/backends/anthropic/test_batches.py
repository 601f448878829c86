"""The judge that asks in batches, against a server that fails as the real one."""

import tracemalloc
from collections.abc import Callable
from datetime import timedelta

import pytest
from anthropic import Anthropic

from commands.backends.anthropic.batches import AnthropicBatches
from commands.errors import (
    BatchRefused,
    BatchUncertain,
    NoCredentials,
    ProviderError,
    ResultsLost,
    SpendLimitReached,
)
from commands.ports import Answer, BatchState, NoReply, Reply
from tests.providers.anthropic.batches import Pace as BatchPace
from tests.providers.anthropic.errors import Limits
from tests.providers.anthropic.exchange import Endpoint, Fault, Kind, Shares
from tests.providers.anthropic.messages import Asked
from tests.providers.anthropic.messages import Reply as FakeReply
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import CANARY, FakeTime, judge_settings, queries, told_of
from tests.support.contracts import BatchJudgeContract


def batching(client: Anthropic, *, clock: FakeTime | None = None) -> AnthropicBatches:
    """Return a judge whose waiting takes no time."""
    pace = (clock or FakeTime()).pace()
    return AnthropicBatches(client, judge_settings(), cache="5m", pace=pace)


def ended(judge: AnthropicBatches, fake: FakeAnthropic, n: int = 20) -> str:
    """Return the id of a batch that has ended."""
    created = judge.create(queries(n))
    fake.end_batches()
    return created.provider_batch_id


def listed(judge: AnthropicBatches, _: str) -> list[BatchState]:
    """Return all batches."""
    return list(judge.created_since(FakeTime().now()))


def keys(answers: list[Answer]) -> list[str]:
    """Return which queries were answered."""
    return sorted(answer.query_key for answer in answers)


class TestAnthropicBatches(BatchJudgeContract):
    """The judge of headlines, with the fake that ends batches when it is told to."""

    @pytest.fixture(autouse=True)
    def _api(self, fake_anthropic: FakeAnthropic, anthropic_client: Anthropic) -> None:
        self.fake = fake_anthropic
        self.client = anthropic_client

    def make(self) -> AnthropicBatches:
        """Return a judge that asks the fake."""
        return batching(self.client)

    def end(self) -> None:
        """End them all."""
        self.fake.end_batches()

    def lose(self, _: str, /) -> None:
        """Let a month pass."""
        self.fake.advance(timedelta(days=30))


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded"])
def test_a_batch_that_was_certainly_not_created_is_sent_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """After the time that the provider asks for."""
    clock = FakeTime()
    fake_anthropic.inject(Fault(endpoint="batches.create", kind=kind, n=3, retry_after_s=9))

    batching(anthropic_client, clock=clock).create(queries(2))

    assert len(fake_anthropic.bill().batches) == 1
    assert len(clock.slept) == 3
    assert (clock.slept == [9.0] * 3) == (kind == "rate_limited")


@pytest.mark.parametrize("kind", ["rate_limited", "overloaded"])
def test_a_provider_that_stays_busy_took_no_batch(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """It is certain, so the plan need not be searched for."""
    clock = FakeTime()
    fake_anthropic.inject(Fault(endpoint="batches.create", kind=kind, n=1000))

    with pytest.raises(BatchRefused):
        batching(anthropic_client, clock=clock).create(queries(2))

    assert 100 < sum(clock.slept) < 200  # longer looks like a hang
    assert fake_anthropic.bill().batches == ()


@pytest.mark.parametrize(
    ("kind", "n_batches"),
    [
        *(("cut_before", 0), ("cut_after", 1), ("cut_half", 1)),
        *(("error_after", 1), ("server_error", 0), ("too_late", 1)),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_batch_that_may_exist_is_not_sent_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind, n_batches: int
) -> None:
    """It would be paid for twice; what became of it is found out later."""
    fake_anthropic.inject(Fault(endpoint="batches.create", kind=kind))

    with pytest.raises(BatchUncertain, match="may still exist") as caught:
        batching(anthropic_client).create(queries(2))

    bill = fake_anthropic.bill()
    assert (len(bill.posts), len(bill.batches)) == (1, n_batches)
    assert CANARY not in told_of(caught.value)


def test_a_batch_that_would_go_in_an_hour_is_not_waited_for(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """It was certainly not created, and somebody should know."""
    clock = FakeTime()
    fake_anthropic.inject(
        Fault(endpoint="batches.create", kind="rate_limited", n=100, retry_after_s=3600)
    )

    with pytest.raises(BatchRefused, match="it asks to wait 3600 s"):
        batching(anthropic_client, clock=clock).create(queries(2))

    assert clock.slept == []


def test_a_page_in_place_of_a_batch_leaves_it_uncertain(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """What sent the page may have passed the batch on."""
    fake_anthropic.inject(Fault(endpoint="batches.create", kind="page"))

    with pytest.raises(BatchUncertain, match=r"<html>Sign in.*may still exist"):
        batching(anthropic_client).create(queries(2))

    assert len(fake_anthropic.bill().posts) == 1


@pytest.mark.parametrize("kind", ["spend_limit", "no_credit"])
def test_a_spend_limit_stops_before_a_batch(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """A rate limit in all but name, or an invalid request: waiting does not help."""
    fake_anthropic.inject(Fault(endpoint="batches.create", kind=kind))

    with pytest.raises(SpendLimitReached):
        batching(anthropic_client).create(queries(2))

    assert len(fake_anthropic.bill().posts) == 1


def test_a_server_that_is_not_there_took_no_batch() -> None:
    """Nothing was sent."""
    with client_of("http://127.0.0.1:9") as client, pytest.raises(BatchRefused, match="Connect"):
        batching(client).create(queries(1))


def test_a_batch_that_is_too_large_says_what_to_lower() -> None:
    """The limit is one of bytes as well as of queries."""
    with FakeAnthropic(limits=Limits(n_batch_bytes=9_000)) as fake, client_of(fake.url) as client:
        judge = batching(client)
        n_bytes = sum(map(judge.n_bytes, queries(3)))

        with pytest.raises(BatchRefused, match=r"HTTP 413.*lower \[judge\] batch_queries"):
            judge.create(queries(3))

    assert n_bytes > 9_000


def test_the_sizes_of_queries_add_up_to_the_size_of_a_batch(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A batch that was split to fit does."""
    judge = batching(anthropic_client)

    judge.create(queries(50))

    (posted,) = fake_anthropic.bill().posts
    frame = len('{"requests":[]}')
    assert posted.n_bytes == sum(map(judge.n_bytes, queries(50))) + frame - 1


def test_a_batch_that_is_invalid_is_refused(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """Two queries of one key could not be told apart in the results."""
    with pytest.raises(BatchRefused, match="not unique"):
        batching(anthropic_client).create(queries(1) * 2)

    assert fake_anthropic.bill().batches == ()


def test_a_wrong_key_is_no_credential() -> None:
    """For each call alike."""
    with FakeAnthropic(api_key="another") as fake, client_of(fake.url) as client:
        judge = batching(client)
        with pytest.raises(NoCredentials):
            judge.create(queries(1))
        with pytest.raises(NoCredentials):
            judge.retrieve("msgbatch_1")
        with pytest.raises(NoCredentials):
            list(judge.created_since(FakeTime().now()))


def test_each_way_that_a_query_ends_is_told(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A refusal and a reply cut short are replies: they are paid for."""
    sixth = 1 / 6
    fake_anthropic.inject(
        shares=Shares(errored=sixth, expired=sixth, canceled=sixth, refused=sixth, truncated=sixth)
    )
    judge = batching(anthropic_client)
    name = ended(judge, fake_anthropic, 60)

    answers, state = list(judge.results(name)), judge.retrieve(name)

    reasons = [each.reason for each in answers if isinstance(each, NoReply)]
    replies = [each for each in answers if isinstance(each, Reply)]
    assert {each.stop_reason for each in replies} == {"end_turn", "refusal", "max_tokens"}
    assert all(each.usage is not None for each in replies)
    assert len(replies) == state.n_succeeded == len(fake_anthropic.bill().paid)
    assert reasons.count("errored") == state.n_errored > 0
    assert reasons.count("expired") == state.n_expired > 0
    assert reasons.count("canceled") == state.n_canceled > 0


@pytest.mark.parametrize(
    ("error_type", "reason"),
    [
        ("invalid_request_error", "rejected"),
        ("not_found_error", "errored"),
        ("overloaded_error", "errored"),
    ],
)
def test_what_is_invalid_is_not_asked_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, error_type: str, reason: str
) -> None:
    """The rest may go well another time."""
    fake_anthropic.inject(shares=Shares(errored=1.0, error_type=error_type))
    judge = batching(anthropic_client)

    (answer,) = judge.results(ended(judge, fake_anthropic, 1))

    assert isinstance(answer, NoReply)
    assert (answer.reason, answer.detail) == (reason, f"{error_type}: Internal server error")


@pytest.mark.parametrize("kind", ["cut_half", "cut_quietly", "pause_half", "rate_limited", "page"])
def test_results_that_were_cut_are_read_to_their_end(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, kind: Kind
) -> None:
    """Each answer comes once, though half of them are read twice."""
    judge = batching(anthropic_client)
    name = ended(judge, fake_anthropic)
    fake_anthropic.inject(
        Fault(endpoint="batches.results", kind=kind, n=2, delay_s=0.1, retry_after_s=0.01)
    )

    answers = list(judge.results(name))

    assert keys(answers) == sorted(query.query_key for query in queries(20))


def test_answers_come_while_the_results_are_read(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """Each is recorded as it is read, before the stream breaks for good."""
    judge = batching(anthropic_client)
    name = ended(judge, fake_anthropic)
    fake_anthropic.inject(Fault(endpoint="batches.results", kind="cut_half", n=100))
    came: list[Answer] = []

    with pytest.raises(ProviderError, match=r"of 20 results of batch .* arrived"):
        came.extend(judge.results(name))

    assert 0 < len(came) < 20
    assert len(set(keys(came))) == len(came)


def test_reading_may_stop_in_the_middle(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """The connection is given back, and the next reading is whole."""
    judge = batching(anthropic_client)
    name = ended(judge, fake_anthropic)
    reading = judge.results(name)
    next(reading)
    del reading

    assert len(list(judge.results(name))) == 20


def test_a_batch_that_expired_answers_with_nothing(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A day is all that a batch has."""
    judge = batching(anthropic_client)
    name = judge.create(queries(2)).provider_batch_id
    fake_anthropic.advance(timedelta(hours=25))

    answers = list(judge.results(name))

    assert [each.reason for each in answers if isinstance(each, NoReply)] == ["expired"] * 2


def test_a_batch_may_end_with_some_of_it_answered() -> None:
    """What was answered before the cancelling is paid for, and kept."""
    pace = BatchPace(ends_after_retrievals=None, share_done_at_cancel=0.5)

    with FakeAnthropic(pace=pace) as fake, client_of(fake.url) as client:
        judge = batching(client)
        name = judge.create(queries(10)).provider_batch_id
        judge.cancel(name)
        state = judge.retrieve(name)

        assert (state.n_succeeded, state.n_canceled) == (5, 5)
        assert sum(isinstance(each, Reply) for each in judge.results(name)) == 5


def test_results_may_be_lost_while_they_are_read(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """The first look said that they are there."""
    judge = batching(anthropic_client)
    name = ended(judge, fake_anthropic)
    fake_anthropic.inject(Fault(endpoint="batches.results", kind="cut_half"))
    reading = judge.results(name)
    next(reading)
    fake_anthropic.advance(timedelta(days=30))

    with pytest.raises(ResultsLost):
        list(reading)


def test_the_list_is_read_page_by_page_and_no_further_than_needed(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A workspace may hold months of batches of others."""
    judge = batching(anthropic_client)
    states = [judge.create(queries(1)) for _ in range(230)]
    n_before = len(fake_anthropic.bill(settle=False).calls)

    since = list(judge.created_since(states[120].created_at))
    n_pages = len(fake_anthropic.bill(settle=False).calls) - n_before

    assert [each.provider_batch_id for each in since] == [
        each.provider_batch_id for each in reversed(states[120:])
    ]
    assert n_pages == 2


ENDPOINTS: tuple[Endpoint, ...] = ("batches.retrieve", "batches.list", "batches.cancel")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("kind", ["rate_limited", "cut_before"])
def test_what_costs_nothing_is_asked_again(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic, endpoint: Endpoint, kind: Kind
) -> None:
    """An hour of polling outlives many a failure."""
    judge = batching(anthropic_client)
    created = judge.create(queries(1))
    fake_anthropic.inject(Fault(endpoint=endpoint, kind=kind, retry_after_s=0.01))

    listed = list(judge.created_since(created.created_at))
    found = judge.retrieve(created.provider_batch_id)
    canceled = judge.cancel(created.provider_batch_id)

    names = {each.provider_batch_id for each in (*listed, found, canceled)}
    assert names == {created.provider_batch_id}


def test_what_fails_for_good_is_a_providers_error(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """It says what to do: run again, and nothing is lost."""
    judge = batching(anthropic_client)
    name = judge.create(queries(1)).provider_batch_id
    fake_anthropic.inject(
        Fault(endpoint="batches.retrieve", kind="rate_limited", n=99, retry_after_s=0.01)
    )

    with pytest.raises(ProviderError, match="run the same command again") as caught:
        judge.retrieve(name)

    assert "HTTP 429" in str(caught.value)
    assert CANARY not in told_of(caught.value)


@pytest.mark.parametrize("ask", [AnthropicBatches.retrieve, AnthropicBatches.cancel, listed])
def test_a_page_in_place_of_an_answer_is_a_providers_error(
    fake_anthropic: FakeAnthropic,
    anthropic_client: Anthropic,
    ask: Callable[[AnthropicBatches, str], object],
) -> None:
    """Its beginning shows what it is: mostly a proxy's."""
    judge = batching(anthropic_client)
    name = judge.create(queries(1)).provider_batch_id
    fake_anthropic.inject(Fault(endpoint="*", kind="page"))

    with pytest.raises(ProviderError, match="<html>Sign in"):
        ask(judge, name)


def test_results_are_never_all_in_memory() -> None:
    """A headline's results are hundreds of megabytes."""

    def wordily(_: Asked) -> FakeReply:
        return FakeReply("word " * 2_000 + "\nVERDICT: A")

    pace = BatchPace(ends_after_retrievals=None)
    with FakeAnthropic(answering=wordily, pace=pace) as fake, client_of(fake.url) as client:
        judge = batching(client)
        results = judge.results(ended(judge, fake, 400))
        next(results)
        tracemalloc.start()
        n_read = sum(1 for _ in results)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert n_read == 399
    assert peak < 1_000_000  # of 4 MB
