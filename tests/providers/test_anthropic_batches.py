"""The life of a batch, through the real SDK, and in a process of the fake's own."""

from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from anthropic import Anthropic, AnthropicError, BadRequestError, NotFoundError, OverloadedError

from tests.providers.anthropic.batches import Pace
from tests.providers.anthropic.exchange import Fault, Shares
from tests.providers.anthropic.process import FakeProcess
from tests.providers.anthropic.prompt import digest_of
from tests.providers.anthropic.requests import (
    asking,
    client_of,
    ended,
    is_whole,
    kinds,
    requests,
    results,
)
from tests.providers.anthropic.server import FakeAnthropic


def test_a_batch_is_created_polled_and_read(fake: FakeAnthropic, client: Anthropic) -> None:
    """The whole way that a run goes when nothing is amiss."""
    batch = client.messages.batches.create(requests=requests(3))
    looks = [client.messages.batches.retrieve(batch.id) for _ in range(2)]
    came = results(client, looks[1])

    assert [look.processing_status for look in looks] == ["in_progress", "ended"]
    assert batch.results_url is None
    assert [look.request_counts.processing for look in looks] == [3, 0]
    assert looks[1].request_counts.succeeded == 3
    assert looks[1].results_url == f"{fake.url}/v1/messages/batches/{batch.id}/results"
    assert batch.expires_at - batch.created_at == timedelta(hours=24)
    assert kinds(came) == dict.fromkeys(("q-0", "q-1", "q-2"), "succeeded")
    assert all(map(is_whole, [batch, *looks, *came]))


def test_each_request_of_a_batch_is_billed_once(fake: FakeAnthropic, client: Anthropic) -> None:
    """Reading the results again costs nothing."""
    sent = requests(3)
    batch = client.messages.batches.create(requests=sent)
    came = results(client, batch)
    results(client, batch)
    bill = fake.bill()

    assert bill.n_paid_by_digest == {digest_of({**each["params"]}): 1 for each in sent}
    assert bill.n_paid_by_custom_id == {"q-0": 1, "q-1": 1, "q-2": 1}
    used = [each.result.message.usage for each in came if each.result.type == "succeeded"]
    assert bill.total.n_input == sum(usage.input_tokens for usage in used)
    assert {usage.service_tier for usage in used} == {"batch"}
    assert {line.batch_id for line in bill.lines} == {batch.id}


def test_a_batch_that_nobody_polls_is_billed_all_the_same(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """An orphan of a lost answer is the case in which something is paid twice."""
    client.messages.batches.create(requests=requests(3))
    before = fake.bill(settle=False)

    assert (before.n_open_requests, before.paid) == (3, ())
    assert len(fake.bill().paid) == 3


def test_results_come_in_an_order_of_their_own(client: Anthropic) -> None:
    """Who matches them by place is wrong."""
    batch = client.messages.batches.create(requests=requests(20))

    came = [each.custom_id for each in results(client, batch)]

    assert sorted(came) == sorted(each["custom_id"] for each in requests(20))
    assert came != [each["custom_id"] for each in requests(20)]


def test_batches_are_listed_newest_first_in_pages(client: Anthropic) -> None:
    """Reconciling after a lost answer reads this list."""
    made = [client.messages.batches.create(requests=requests(1)).id for _ in range(5)]
    newest_first = made[::-1]

    first = client.messages.batches.list(limit=2)
    after = client.messages.batches.list(limit=2, after_id=first.last_id or "")
    before = client.messages.batches.list(limit=2, before_id=newest_first[3])

    assert [each.id for each in first.data] == newest_first[:2]
    assert [each.id for each in after.data] == newest_first[2:4]
    assert [each.id for each in before.data] == newest_first[1:3]
    assert [page.has_more for page in (first, after, before)] == [True, True, True]
    assert [each.id for each in client.messages.batches.list(limit=2)] == newest_first
    with pytest.raises(BadRequestError):
        client.messages.batches.list(limit=1001)


def test_a_list_of_no_batches_is_empty(client: Anthropic) -> None:
    """A first run reconciles, too."""
    page = client.messages.batches.list()

    assert (page.data, page.has_more, page.first_id) == ([], False, None)


def test_a_canceled_batch_keeps_what_was_done() -> None:
    """What the cancel came too late for is paid."""
    pace = Pace(ends_after_retrievals=None, share_done_at_cancel=0.4)
    with FakeAnthropic(pace=pace) as fake, client_of(fake.url) as client:
        batch = client.messages.batches.create(requests=requests(5))
        canceling = client.messages.batches.cancel(batch.id)
        batch = ended(client, batch)
        bill = fake.bill()

    assert canceling.processing_status == "canceling"
    assert canceling.cancel_initiated_at
    assert (batch.request_counts.succeeded, batch.request_counts.canceled) == (2, 3)
    assert bill.n_by_outcome == {"succeeded": 2, "canceled": 3}
    assert len(bill.paid) == 2


def test_a_batch_that_has_ended_is_not_canceled(client: Anthropic) -> None:
    """It is too late, and the results are there to be read."""
    batch = ended(client, client.messages.batches.create(requests=requests(1)))

    with pytest.raises(BadRequestError, match="has ended"):
        client.messages.batches.cancel(batch.id)


def test_a_batch_expires_after_a_day() -> None:
    """Its requests were not reached, and cost nothing."""
    with (
        FakeAnthropic(pace=Pace(ends_after_retrievals=None)) as fake,
        client_of(fake.url) as client,
    ):
        batch = client.messages.batches.create(requests=requests(2))
        fake.advance(timedelta(hours=23, minutes=59))
        still_open = client.messages.batches.retrieve(batch.id)
        fake.advance(timedelta(minutes=1))
        came = results(client, batch)

        assert still_open.processing_status == "in_progress"
        assert set(kinds(came).values()) == {"expired"}
        assert fake.bill().paid == ()


def test_a_batch_may_end_by_the_clock() -> None:
    """It goes on while the client is away."""
    pace = Pace(ends_after_retrievals=None, ends_after_s=3600)
    with FakeAnthropic(pace=pace) as fake, client_of(fake.url) as client:
        batch = client.messages.batches.create(requests=requests(2))
        fake.advance(timedelta(days=2))
        batch = client.messages.batches.retrieve(batch.id)

    assert batch.request_counts.succeeded == 2
    assert batch.ended_at == batch.created_at + timedelta(hours=1)


def test_results_are_kept_for_29_days_from_creation(fake: FakeAnthropic, client: Anthropic) -> None:
    """A run that is taken up after a month has paid for nothing."""
    batch = ended(client, client.messages.batches.create(requests=requests(1)))
    fake.advance(timedelta(days=29))

    with pytest.raises(AnthropicError, match="No `results_url`"):
        client.messages.batches.results(batch.id)
    with pytest.raises(NotFoundError):
        client.get(str(batch.results_url), cast_to=httpx2.Response)
    assert client.messages.batches.retrieve(batch.id).archived_at


def test_there_are_no_results_of_a_batch_that_is_open(client: Anthropic) -> None:
    """They come all at once."""
    batch = client.messages.batches.create(requests=requests(1))

    with pytest.raises(NotFoundError, match="no results yet"):
        client.get(f"/v1/messages/batches/{batch.id}/results", cast_to=httpx2.Response)
    with pytest.raises(NotFoundError):
        client.messages.batches.retrieve("msgbatch_none")


def test_a_batch_is_deleted_only_when_it_has_ended(fake: FakeAnthropic, client: Anthropic) -> None:
    """The books remember it."""
    batch = client.messages.batches.create(requests=requests(1))
    with pytest.raises(BadRequestError, match="cancel it first"):
        client.messages.batches.delete(batch.id)

    client.messages.batches.delete(ended(client, batch).id)

    assert list(client.messages.batches.list()) == []
    assert [each.batch_id for each in fake.bill().batches] == [batch.id]


@pytest.mark.parametrize(("hit_rate", "n_read"), [(0.0, 0), (1.0, 9)])
def test_a_batch_finds_what_is_cached_at_the_rate_it_is_given(hit_rate: float, n_read: int) -> None:
    """Whether a rubric's caching pays depends on this rate alone."""
    rubric = [
        {"type": "text", "text": "Be fair. " * 400, "cache_control": {"type": "ephemeral"}},
    ]
    with FakeAnthropic(batch_hit_rate=hit_rate) as fake, client_of(fake.url) as client:
        results(client, client.messages.batches.create(requests=requests(10, system=rubric)))
        lines = fake.bill().lines

    assert sum(line.usage.n_read > 0 for line in lines) == n_read
    assert sum(line.usage.n_written_5m > 0 for line in lines) == 10 - n_read


def test_models_that_think_need_room_in_a_batch(client: Anthropic) -> None:
    """max_tokens that is enough for the reply alone cuts it off."""
    asked = asking(model="claude-opus-5-5", max_tokens=50)

    batch = client.messages.batches.create(requests=[{"custom_id": "q", "params": asked}])
    (came,) = results(client, batch)

    assert came.result.type == "succeeded"
    assert came.result.message.stop_reason == "max_tokens"


def test_a_process_serves_and_is_told_what_to_do(tmp_path: Path) -> None:
    """A client may be killed without the fake, and the bill is read from outside."""
    with (
        FakeProcess(tmp_path, "--ends-after-retrievals", "-1") as fake,
        client_of(fake.url) as client,
    ):
        fake.inject(Fault(endpoint="messages", kind="overloaded"), shares=Shares(expired=1.0))
        with pytest.raises(OverloadedError):
            client.messages.create(**asking())
        fake.clear()
        batch = client.messages.batches.create(requests=requests(3))
        is_open = fake.bill(settle=False).n_open_requests == 3
        fake.end_batches()
        came = results(client, batch)
        fake.advance(timedelta(days=29))
        bill = fake.bill()

        assert is_open
        assert len(came) == 3
        assert bill.n_paid_by_custom_id == {"q-0": 1, "q-1": 1, "q-2": 1}
        assert fake.bill(lines=False).lines == []
        assert client.messages.batches.retrieve(batch.id).archived_at


def test_a_process_refuses_what_it_does_not_understand(tmp_path: Path) -> None:
    """A test with a wrong fault must not go on as if there were none."""
    wrong = Fault(endpoint="everywhere", kind="cut_after")  # type: ignore[arg-type]  # wrong
    with FakeProcess(tmp_path) as fake:
        with pytest.raises(RuntimeError, match="everywhere"):
            fake.inject(wrong)

        assert fake.bill().calls == []
