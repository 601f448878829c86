"""The judge that asks in batches, against a server that fails as the real one."""

import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeAlias

import pytest
from anthropic import Anthropic

from commands.backends.anthropic.batches import AnthropicBatches, judge_batches
from commands.errors import BatchRefused
from commands.ports import NoReply, Reply
from projections.verdicts.queries import JudgeQuery
from tests.providers.anthropic.exchange import Endpoint, Fault, Kind, Shares
from tests.providers.anthropic.messages import Reply as FakeReply
from tests.providers.anthropic.prompt import Params
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.anthropic import judge_settings, queries
from tests.support.faults.makers import BatchFaults, Call

Batches: TypeAlias = AnthropicBatches[JudgeQuery, Reply]


def batching(client: Anthropic) -> Batches:
    """Return a judge."""
    return judge_batches(client, judge_settings(), cache="5m")


def ended(judge: Batches, fake: FakeAnthropic, n: int = 20) -> str:
    """Return the id of a batch that has ended."""
    created = judge.create(queries(n))
    fake.end_batches()
    return created.provider_batch_id


ENDPOINTS: Mapping[Call, Endpoint] = {
    "create": "batches.create",
    "retrieve": "batches.retrieve",
    "list": "batches.list",
    "cancel": "batches.cancel",
    "results": "batches.results",
}


class TestAnthropicBatches(BatchFaults):
    """The judge of headlines, with the fake that ends batches when it is told to."""

    @pytest.fixture(autouse=True)
    def _api(self, fake_anthropic: FakeAnthropic, anthropic_client: Anthropic) -> None:
        self.fake, self.client = fake_anthropic, anthropic_client

    def make(self) -> Batches:
        """Return a judge that asks the fake."""
        return batching(self.client)

    def make_at(self, url: str) -> Batches:
        """Return a judge that asks another address."""
        return batching(self.client.with_options(base_url=url))

    @contextmanager
    def locked(self) -> Iterator[Batches]:
        """Return a judge whose key is not taken."""
        with FakeAnthropic(api_key="another") as fake:
            yield self.make_at(fake.url)

    def inject(self, call: Call, kind: Kind, n: int = 1) -> None:
        """Let the next n calls fail."""
        self.fake.inject(Fault(endpoint=ENDPOINTS[call], kind=kind, n=n, retry_after_s=0.01))

    def end(self) -> None:
        """End them all."""
        self.fake.end_batches()

    def lose(self, _: str, /) -> None:
        """Let a month pass."""
        self.fake.advance(timedelta(days=30))

    def rejection(self, custom_id: str, why: str) -> bytes:
        """Return the line of an invalid query."""
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": why}}
        result = {"type": "errored", "error": error}
        return json.dumps({"custom_id": custom_id, "result": result}).encode()

    def n_calls(self, call: Call) -> int:
        """Return how often the API was called."""
        calls = self.fake.bill(settle=False).calls
        return sum(each.endpoint == ENDPOINTS[call] for each in calls)

    def list_at_most(self, n_batches: int) -> None:
        """Let a page hold no more."""
        self.fake.service.longest_page = n_batches

    def n_created(self) -> int:
        """Return how many batches there are."""
        return len(self.fake.bill(settle=False).batches)

    def retell(self, provider_batch_id: str, edit: Callable[[list[bytes]], list[bytes]]) -> None:
        """Change the file of results."""
        batch = self.fake.service.batches[provider_batch_id]
        batch.results = b"\n".join(edit(batch.results.splitlines()))


def test_the_sizes_of_queries_add_up_to_the_size_of_a_batch(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """A batch that was split to fit does, and U+2028 takes three bytes."""
    judge = batching(anthropic_client)
    asked = [each._replace(user=f'{each.user} ä "\u2028\x00\n') for each in queries(50)]

    judge.create(asked)

    (posted,) = fake_anthropic.bill().posts
    frame = len('{"requests":[]}')
    assert posted.n_bytes == sum(map(judge.n_bytes, asked)) + frame - 1


def test_a_batch_that_is_invalid_is_refused(
    fake_anthropic: FakeAnthropic, anthropic_client: Anthropic
) -> None:
    """Two queries of one key could not be told apart in the results."""
    with pytest.raises(BatchRefused, match="not unique"):
        batching(anthropic_client).create(queries(1) * 2)

    assert fake_anthropic.bill().batches == ()


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


def test_results_are_never_all_in_memory() -> None:
    """A headline's results are hundreds of megabytes."""

    def wordily(_: Params) -> FakeReply:
        return FakeReply("word " * 2_000 + "\nVERDICT: A")

    with FakeAnthropic(answering=wordily) as fake, client_of(fake.url) as client:
        judge = batching(client)
        results = judge.results(ended(judge, fake, 100))
        next(results)
        tracemalloc.start()
        n_read = sum(1 for _ in results)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert n_read == 99
    assert peak < 500_000  # of 1 MB
