"""The judge that asks OpenAI's models in batches, against a server that fails as the real one."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from commands.backends.endpoint.batches import OpenAIBatches
from commands.backends.endpoint.server import Endpoint
from commands.errors import (
    BatchGone,
    BatchRefused,
    BatchUncertain,
    NoCredentials,
    ProviderError,
    ResultsLost,
    SpendLimitReached,
)
from commands.ports import Answer, NoReply, Reply, queries_digest
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from tests.providers.openai import MODEL, Json, Said
from tests.providers.openai_batches.server import FakeOpenAIBatches
from tests.providers.openai_batches.service import Call, Kind, Trouble
from tests.support.builders.anthropic import FakeTime, queries, told_of
from tests.support.contracts import BatchJudgeContract

CANARY = "sk-canary-7b2e"
BEGINNING = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.fixture
def fake() -> Iterator[FakeOpenAIBatches]:
    """Give a server on which nothing goes wrong."""
    with FakeOpenAIBatches() as fake:
        yield fake


@pytest.fixture
def clock() -> FakeTime:
    """Give a clock that only waiting moves on."""
    return FakeTime()


@pytest.fixture
def judge(fake: FakeOpenAIBatches, clock: FakeTime) -> OpenAIBatches:
    """Give a judge that asks the fake."""
    return batching(fake.url, clock)


def batching(url: str, clock: FakeTime) -> OpenAIBatches:
    """Return a judge whose waiting takes no time."""
    parameters = (("max_tokens", 64.0), ("temperature", "omitted"))
    settings = JudgeSettings(JudgeId("gpt"), "openai-batch", MODEL, parameters)
    return OpenAIBatches(settings, Endpoint(url, "judge", CANARY), pace=clock.pace())


def ended(judge: OpenAIBatches, fake: FakeOpenAIBatches, n: int = 20) -> str:
    """Return the id of a batch that has ended."""
    created = judge.create(queries(n))
    fake.end_batches()
    return created.provider_batch_id


def keys(answers: list[Answer]) -> list[str]:
    """Return which queries were answered."""
    return sorted(answer.query_key for answer in answers)


def keys_of(n: int) -> list[str]:
    """Return the keys of the queries that are asked."""
    return sorted(query.query_key for query in queries(n))


class TestOpenAIBatches(BatchJudgeContract):
    """The judge, with the fake that ends batches when it is told to."""

    @pytest.fixture(autouse=True)
    def _api(self, fake: FakeOpenAIBatches) -> None:
        self.fake = fake

    def make(self) -> OpenAIBatches:
        """Return a judge that asks the fake."""
        return batching(self.fake.url, FakeTime())

    def end(self) -> None:
        """End them all."""
        self.fake.end_batches()

    def lose(self, _: str, /) -> None:
        """Let a month pass."""
        self.fake.lose_files()


def test_a_query_is_asked_in_a_batch_as_it_is_asked_alone(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """So neither asks what the other was paid for; the key tells the answers apart."""
    (query,) = queries(1)

    judge.create([query])

    (content,) = fake.service.files.values()
    assert json.loads(content) == {
        "custom_id": query.query_key,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": MODEL,
            "max_completion_tokens": 64,
            "messages": [
                {"role": "system", "content": query.system},
                {"role": "user", "content": query.user},
            ],
        },
    }
    assert judge.n_bytes(query) == len(content)


def test_a_batch_tells_its_queries_from_the_beginning(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """One of unknown fate is found by them, though the server has not counted them yet."""
    judge.create(queries(3))

    (found,) = judge.created_since(BEGINNING)

    (batch,) = fake.service.batches.values()
    assert batch["request_counts"] == {"total": 0, "completed": 0, "failed": 0}
    assert found.n_queries == 3
    assert found.queries_digest == queries_digest(query.query_key for query in queries(3))


def test_an_order_that_was_certainly_not_taken_is_sent_again(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, clock: FakeTime
) -> None:
    """The file is uploaded once."""
    fake.inject(*[Trouble("order", "rate_limited")] * 3)

    judge.create(queries(2))

    assert fake.service.calls == ["upload", *["order"] * 4]
    assert len(fake.service.batches) == 1
    assert len(clock.slept) == 3


def test_a_server_that_stays_busy_took_no_batch(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """It is certain, so the plan need not be searched for."""
    fake.inject(*[Trouble("order", "rate_limited")] * 1000)

    with pytest.raises(BatchRefused):
        judge.create(queries(2))

    assert fake.service.batches == {}


@pytest.mark.parametrize(
    ("kind", "n_batches"),
    [
        *(("busy", 0), ("cut_before", 0), ("cut_after", 1), ("error_before", 0)),
        *(("error_after", 1), ("too_late", 1), ("page", 1)),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_batch_that_may_exist_is_not_ordered_again(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, kind: Kind, n_batches: int
) -> None:
    """It would be paid for twice; what became of it is found out later."""
    fake.inject(Trouble("order", kind))

    with pytest.raises(BatchUncertain, match="may still exist") as caught:
        judge.create(queries(2))

    assert fake.service.calls.count("order") == 1
    assert len(fake.service.batches) == n_batches
    assert CANARY not in told_of(caught.value)


@pytest.mark.parametrize("kind", ["cut_before", "cut_after", "error_after", "rate_limited"])
def test_an_upload_is_free_and_repeated(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, kind: Kind
) -> None:
    """A file without an order costs nothing."""
    fake.inject(Trouble("upload", kind))

    judge.create(queries(2))

    assert fake.service.calls == ["upload", "upload", "order"]
    assert len(fake.service.batches) == 1


@pytest.mark.parametrize("call", ["upload", "order"])
def test_used_up_credit_stops_before_a_batch(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, call: Call
) -> None:
    """It looks like a rate limit, and waiting does not help."""
    fake.inject(*[Trouble(call, "no_quota")] * 9)

    with pytest.raises(SpendLimitReached):
        judge.create(queries(2))

    assert fake.service.batches == {}


def test_a_server_that_is_not_there_took_no_batch(clock: FakeTime) -> None:
    """Nothing was sent."""
    with FakeOpenAIBatches() as gone:
        url = gone.url

    with pytest.raises(BatchRefused, match="Connect"):
        batching(url, clock).create(queries(1))


def test_a_wrong_key_is_no_credential_and_not_quoted(clock: FakeTime) -> None:
    """For each call alike; the server's own words do quote it."""
    with FakeOpenAIBatches(api_key="another") as fake:
        judge = batching(fake.url, clock)
        for ask in (
            lambda: judge.create(queries(1)),
            lambda: judge.retrieve("batch_1"),
            lambda: list(judge.created_since(BEGINNING)),
            lambda: judge.cancel("batch_1"),
        ):
            with pytest.raises(NoCredentials, match="export OPENAI_API_KEY=") as refusal:
                ask()
            assert CANARY not in told_of(refusal.value)


def test_each_way_that_a_query_ends_is_told(judge: OpenAIBatches, fake: FakeOpenAIBatches) -> None:
    """Results and failures lie in different files; only what was answered is billed."""
    asked = queries(5)
    long: Json = {"error": {"code": "context_length_exceeded", "message": "too long"}}
    temperature: Json = {
        "error": {"message": "Unsupported value: 'temperature' does not support 0."}
    }
    fake.service.refused = {
        asked[0].query_key: (400, long),
        asked[1].query_key: (400, temperature),
        asked[2].query_key: (500, {"error": {"message": "Oops"}}),
    }
    name = ended(judge, fake, 5)

    answers, state = list(judge.results(name)), judge.retrieve(name)

    told = {each.query_key: each for each in answers if isinstance(each, NoReply)}
    assert [told[query.query_key].reason for query in asked[:3]] == ["rejected", *["errored"] * 2]
    assert told[asked[1].query_key].detail.endswith("; set greedy = false")
    assert sum(isinstance(each, Reply) for each in answers) == state.n_succeeded == 2
    assert sorted(fake.service.billed) == sorted(query.query_key for query in asked[3:])
    assert state.n_errored == 3


def test_a_refusal_is_a_reply_that_is_paid_for(clock: FakeTime) -> None:
    """It is read as one that came by itself."""
    with FakeOpenAIBatches(lambda _: Said(None, refusal="No.")) as fake:
        judge = batching(fake.url, clock)
        (reply,) = judge.results(ended(judge, fake, 1))

    assert isinstance(reply, Reply)
    assert (reply.text, reply.stop_reason) == ("No.", "refusal")
    assert reply.usage is not None


def test_an_answer_that_is_none_may_have_been_billed(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """It is one query's failure; the others are read."""
    asked = queries(3)
    fake.service.refused = {asked[0].query_key: (200, {"choices": []})}

    answers = list(judge.results(ended(judge, fake, 3)))

    (failure,) = (each for each in answers if isinstance(each, NoReply))
    assert (failure.query_key, failure.reason) == (asked[0].query_key, "errored")
    assert failure.fate == "perhaps billed"
    assert len(answers) == 3


@pytest.mark.parametrize("kind", ["cut_half", "cut_quietly", "rate_limited", "error_before"])
def test_results_that_were_cut_are_read_to_their_end(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, kind: Kind
) -> None:
    """Each answer comes once, though half of them are read twice."""
    name = ended(judge, fake)
    fake.inject(*[Trouble("content", kind)] * 2)

    assert keys(list(judge.results(name))) == keys_of(20)


def test_answers_come_while_the_results_are_read(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """Each is recorded as it is read, before the download breaks for good."""
    name = ended(judge, fake)
    fake.inject(*[Trouble("content", "cut_half")] * 100)
    came: list[Answer] = []

    with pytest.raises(ProviderError, match=r"^results of batch batch_2 break off"):
        came.extend(judge.results(name))

    assert 0 < len(came) < 20
    assert len(set(keys(came))) == len(came)


@pytest.mark.parametrize("n_done", [0, 3])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_batch_that_expired_keeps_what_was_answered(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, n_done: int, is_cut: bool
) -> None:
    """A day is all that a batch has."""
    name = judge.create(queries(5)).provider_batch_id
    fake.end_batches("expired", n_done=n_done)
    if is_cut:
        fake.inject(Trouble("content", "cut_quietly"))

    answers = list(judge.results(name))

    reasons = [each.reason for each in answers if isinstance(each, NoReply)]
    assert reasons == ["expired"] * (5 - n_done)
    assert keys(answers) == keys_of(5)
    assert len(fake.service.billed) == n_done
    assert judge.retrieve(name).n_expired == 5 - n_done


def test_a_canceled_batch_keeps_what_was_answered(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """Its files name no other query: the file of requests does."""
    name = judge.create(queries(10)).provider_batch_id
    fake.end_batches("cancelled", n_done=4)

    answers, state = list(judge.results(name)), judge.retrieve(name)

    assert (state.n_succeeded, state.n_canceled) == (4, 6)
    assert sum(isinstance(each, Reply) for each in answers) == 4
    assert {each.reason for each in answers if isinstance(each, NoReply)} == {"canceled"}
    assert keys(answers) == keys_of(10)


def test_a_batch_that_is_invalid_did_nothing(judge: OpenAIBatches, fake: FakeOpenAIBatches) -> None:
    """A misspelt model is found out before anything is billed."""
    name = judge.create(queries(2)).provider_batch_id
    fake.fail_batches("model_not_found", "The model `gtp-5` does not exist")

    state, answers = judge.retrieve(name), list(judge.results(name))

    why = "model_not_found: The model `gtp-5` does not exist (line 1)"
    assert state.has_ended
    assert state.failure == why
    assert state.n_errored == 2
    assert answers == [
        NoReply(query.query_key, "errored", f"the batch was found invalid: {why}")
        for query in queries(2)
    ]
    assert fake.service.billed == []


def test_two_queries_of_one_key_are_refused(judge: OpenAIBatches, fake: FakeOpenAIBatches) -> None:
    """They could not be told apart in the results."""
    name = judge.create(queries(1) * 2).provider_batch_id
    fake.end_batches()

    failure = judge.retrieve(name).failure
    assert failure is not None
    assert "duplicate_custom_id" in failure


def test_results_may_be_lost_while_they_are_read(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """The first look said that they are there."""
    name = ended(judge, fake)
    fake.inject(Trouble("content", "cut_half"))
    reading = judge.results(name)
    next(reading)
    fake.lose_files()

    with pytest.raises(ResultsLost):
        list(reading)


def test_the_list_is_read_page_by_page_and_no_further_than_needed(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """A project may hold months of batches of others."""
    states = [judge.create(queries(1)) for _ in range(230)]
    n_before = len(fake.service.calls)

    since = list(judge.created_since(states[120].created_at))

    assert [each.provider_batch_id for each in since] == [
        each.provider_batch_id for each in reversed(states[120:])
    ]
    assert len(fake.service.calls) - n_before == 2


CALLS: tuple[Call, ...] = ("retrieve", "list", "cancel")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["rate_limited", "cut_before", "error_before"])
def test_what_costs_nothing_is_asked_again(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, call: Call, kind: Kind
) -> None:
    """An hour of polling outlives many a failure."""
    created = judge.create(queries(1))
    fake.inject(Trouble(call, kind))

    listed = list(judge.created_since(created.created_at))
    found = judge.retrieve(created.provider_batch_id)
    canceled = judge.cancel(created.provider_batch_id)

    names = {each.provider_batch_id for each in (*listed, found, canceled)}
    assert names == {created.provider_batch_id}


def test_a_page_in_place_of_an_answer_is_a_providers_error(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """Its beginning shows what it is: mostly a proxy's."""
    name = judge.create(queries(1)).provider_batch_id
    fake.inject(*(Trouble(call, "page") for call in CALLS))

    for ask in (judge.retrieve, judge.cancel, lambda _: list(judge.created_since(BEGINNING))):
        with pytest.raises(ProviderError, match="<html>Sign in"):
            ask(name)


def test_a_batch_of_another_project_is_gone(judge: OpenAIBatches) -> None:
    """Under another key the provider knows none of ours."""
    with pytest.raises(BatchGone, match="batch_9"):
        judge.cancel("batch_9")
