"""The judge that asks OpenAI's models in batches, against a server that fails as the real one."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from commands.backends.endpoint.batches import OpenAIBatches
from commands.backends.endpoint.server import Endpoint
from commands.errors import ProviderError
from commands.ports import NoReply, Reply
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from projections.verdicts.queries import queries_digest
from tests.providers.anthropic.exchange import Kind
from tests.providers.billing_gateway import Gateway, well
from tests.providers.openai import MODEL, Json
from tests.providers.openai_batches.server import FakeOpenAIBatches
from tests.providers.openai_batches.service import Call, Trouble, error
from tests.support.builders.anthropic import CANARY, queries
from tests.support.faults.makers import BatchFaults, keys
from tests.support.faults.makers import Call as AnyCall

BEGINNING = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.fixture
def fake() -> Iterator[FakeOpenAIBatches]:
    """Give a server on which nothing goes wrong."""
    with FakeOpenAIBatches() as fake:
        yield fake


@pytest.fixture
def judge(fake: FakeOpenAIBatches) -> OpenAIBatches:
    """Give a judge that asks the fake."""
    return batching(fake.url)


def batching(url: str) -> OpenAIBatches:
    """Return a judge."""
    parameters = (("max_tokens", 64.0),)
    settings = JudgeSettings(JudgeId("gpt"), "openai-batch", MODEL, parameters)
    return OpenAIBatches(settings, Endpoint(url, "judge", CANARY))


def ended(judge: OpenAIBatches, fake: FakeOpenAIBatches, n: int = 20) -> str:
    """Return the id of a batch that has ended."""
    created = judge.create(queries(n))
    fake.end_batches()
    return created.provider_batch_id


CALLS: Mapping[AnyCall, Call] = {
    "create": "order",
    "retrieve": "retrieve",
    "list": "list",
    "cancel": "cancel",
    "results": "content",
}


class TestOpenAIBatches(BatchFaults):
    """The judge, with the fake that ends batches when it is told to."""

    @pytest.fixture(autouse=True)
    def _api(self, fake: FakeOpenAIBatches) -> None:
        self.fake = fake

    def make(self) -> OpenAIBatches:
        """Return a judge that asks the fake."""
        return batching(self.fake.url)

    def make_at(self, url: str) -> OpenAIBatches:
        """Return a judge that asks another address."""
        return batching(f"{url}/v1")

    @contextmanager
    def locked(self) -> Iterator[OpenAIBatches]:
        """Return a judge whose key is not taken."""
        with FakeOpenAIBatches(api_key="another") as fake:
            yield batching(fake.url)

    def inject(self, call: AnyCall, kind: Kind, n: int = 1) -> None:
        """Let the next n calls fail."""
        first = "upload" if kind == "too_large" else CALLS[call]  # of the two of an order
        self.fake.inject(*[Trouble(first, kind)] * n)

    def end(self) -> None:
        """End them all."""
        self.fake.end_batches()

    def lose(self, _: str, /) -> None:
        """Let a month pass."""
        self.fake.lose_files()

    def rejection(self, custom_id: str, why: str) -> bytes:
        """Return the line of an invalid query."""
        response = {"status_code": 400, "body": {"error": {"message": why}}}
        return json.dumps({"custom_id": custom_id, "response": response, "error": None}).encode()

    def n_calls(self, call: AnyCall) -> int:
        """Return how often the API was called."""
        return self.fake.service.calls.count(CALLS[call])

    def list_at_most(self, n_batches: int) -> None:
        """Let a page hold no more."""
        self.fake.service.longest_page = n_batches

    def n_created(self) -> int:
        """Return how many batches there are."""
        return len(self.fake.service.batches)

    def retell(self, provider_batch_id: str, edit: Callable[[list[bytes]], list[bytes]]) -> None:
        """Change the file of answers."""
        name = str(self.fake.service.batches[provider_batch_id]["output_file_id"])
        files = self.fake.service.files
        files[name] = b"\n".join(edit(files[name].splitlines()))


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
            "temperature": 0.0,
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


def test_a_server_that_does_not_list_batches_says_so_before_one_is_sent() -> None:
    """Whether it took one whose order was lost could not be found out."""
    with (
        Gateway(lambda _, body: well(body)) as gateway,
        pytest.raises(ProviderError, match=r"does not list batches \(HTTP 404.*, so a"),
    ):
        batching(gateway.url).now()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", ["cut_after", "rate_limited"])
def test_an_upload_is_free_and_repeated(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, kind: Kind
) -> None:
    """A file without an order costs nothing."""
    fake.inject(Trouble("upload", kind))

    judge.create(queries(2))

    assert fake.service.calls == ["upload", "upload", "order"]
    assert len(fake.service.batches) == 1


def test_each_way_that_a_query_ends_is_told(judge: OpenAIBatches, fake: FakeOpenAIBatches) -> None:
    """Results and failures lie in different files; an answer that is none may have been billed."""
    asked = queries(6)
    long: Json = {"error": {"code": "context_length_exceeded", "message": "too long"}}
    temperature: Json = {
        "error": {"message": "Unsupported value: 'temperature' does not support 0."}
    }
    keys = [query.query_key for query in asked]
    fake.service.refused = {
        keys[0]: (400, long),
        keys[1]: (400, temperature),
        keys[2]: (500, {"error": {"message": "Oops, Bearer foreign-canary-77"}}),
        keys[3]: (200, {"choices": []}),
    }
    name = ended(judge, fake, 6)

    answers, state = list(judge.results(name)), judge.retrieve(name)

    told = {each.query_key: each for each in answers if isinstance(each, NoReply)}
    assert [(told[each].reason, told[each].then) for each in keys[:4]] == [
        *(("rejected", "go on"), ("errored", "wait"), ("errored", "go on"), ("errored", "go on"))
    ]
    assert "canary" not in told[keys[2]].detail  # a key that was repeated
    assert told[keys[3]].fate == "perhaps billed"
    assert sum(isinstance(each, Reply) for each in answers) == 2
    assert (state.n_succeeded, state.n_errored) == (3, 3)
    assert sorted(fake.service.billed) == sorted(keys[4:])


def test_a_parameter_that_a_model_does_not_take_is_left_out_of_the_next_batch(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """The queries stay open and were not billed; a later command begins with what was learnt."""
    asked = queries(2)
    told: Json = {"message": "Unsupported value: 'temperature'", "param": "temperature"}
    fake.service.refused = {query.query_key: (400, {"error": told}) for query in asked}

    name = ended(judge, fake, 2)
    failures = [*judge.results(name)]
    judge.create(asked)

    assert {
        (each.reason, each.fate, each.then) for each in failures if isinstance(each, NoReply)
    } == {("errored", "refused", "wait")}
    again = [*judge.results(name)]  # whoever looks first takes it from nobody
    (refused,) = {each for failure in (*failures, *again) for each in failure.refused}
    *_, content = fake.service.files.values()
    assert b"temperature" not in content
    settings = JudgeSettings(JudgeId("gpt"), "openai-batch", MODEL, (("max_tokens", 64.0),))
    later = OpenAIBatches(settings, Endpoint(fake.url, "judge", CANARY), refused=[refused])
    later.create(asked)
    *_, content = fake.service.files.values()
    assert b"temperature" not in content


def test_a_parameter_that_no_field_names_is_learnt_once_a_batch_without_it_is_answered(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """The words may quote the request; after the last parameter another server must be chosen."""
    words = "Unsupported parameters: 'max_completion_tokens' and 'temperature'"
    wanted = {"max_completion_tokens", "temperature"}
    fake.service.why_refused = lambda body: error(words) if wanted & body.keys() else None

    refused = [[*judge.results(ended(judge, fake, 2))] for _ in range(2)]
    replies = [*judge.results(ended(judge, fake, 2))]
    fake.service.why_refused = lambda _: error("Unsupported parameter: 'max_tokens'")
    (last, *_) = judge.results(ended(judge, fake, 2))

    assert {
        (each.then, *each.refused)
        for batch in refused
        for each in batch
        if isinstance(each, NoReply)
    } == {("wait",)}
    assert [each.parameter for reply in replies for each in reply.refused] == [*sorted(wanted)]
    assert isinstance(last, NoReply)
    assert last.detail.endswith("; choose another model or server")


def test_a_parameter_that_one_rejection_quotes_is_left_out_of_that_query_alone(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """It may mean something else: only that query can tell, once it is answered."""
    odd, plain = asked = queries(2)
    words = error("Unsupported characters; the request was temperature=0.0")
    fake.service.refused = {odd.query_key: (400, words)}

    first = [*judge.results(ended(judge, fake, 2))]
    judge.create(asked)
    sent = [json.loads(line) for line in [*fake.service.files.values()][-1].splitlines()]
    fake.end_batches()
    second = [*judge.results([*fake.service.batches][-1])]

    bodies = {line["custom_id"]: line["body"] for line in sent}
    assert "temperature" in bodies[plain.query_key]
    assert "temperature" not in bodies[odd.query_key]
    assert [[*each.refused] for each in (*first, *second)] == [[]] * 4


@pytest.mark.parametrize(("ending", "reason"), [("expired", "expired"), ("cancelled", "canceled")])
def test_a_batch_that_ends_too_soon_keeps_what_was_answered(
    judge: OpenAIBatches, fake: FakeOpenAIBatches, ending: str, reason: str
) -> None:
    """A day is all that a batch has; a canceled one's files name no other query."""
    name = judge.create(queries(5)).provider_batch_id
    fake.end_batches(ending, n_done=3)

    answers, state = list(judge.results(name)), judge.retrieve(name)

    assert [each.reason for each in answers if isinstance(each, NoReply)] == [reason] * 2
    assert keys(answers) == sorted(query.query_key for query in queries(5))
    assert len(fake.service.billed) == state.n_succeeded == 3
    assert (state.n_expired, state.n_canceled) == ((2, 0) if reason == "expired" else (0, 2))


def test_what_a_cut_download_of_a_batch_lacks_is_not_taken_for_unanswered(
    judge: OpenAIBatches, fake: FakeOpenAIBatches
) -> None:
    """It was answered and billed: the count of answers tells that some are missing."""
    name = judge.create(queries(10)).provider_batch_id
    fake.end_batches("cancelled", n_done=4)
    fake.inject(Trouble("content", "cut_quietly"))

    cut, whole = list(judge.results(name)), list(judge.results(name))

    assert 0 < len(cut) < 4
    assert all(isinstance(each, Reply) for each in cut)
    assert keys(whole) == sorted(query.query_key for query in queries(10))


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
