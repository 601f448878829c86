"""How the fake fails, and what the real SDK makes of it."""

import socket
import time
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx2
import pytest
from anthropic import (
    Anthropic,
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    BadRequestError,
    InternalServerError,
    OverloadedError,
    RateLimitError,
)
from anthropic.types import TextBlock
from anthropic.types.messages import MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import Request
from anthropic.types.shared import EnforcedSpendLimitReachedError

from tests.providers.anthropic.exchange import Fault, Kind, Shares
from tests.providers.anthropic.requests import asking, client_of, ended, is_whole, requests, results
from tests.providers.anthropic.server import FakeAnthropic

CALLS: dict[str, Callable[[Anthropic], object]] = {
    "messages": lambda client: client.messages.create(**asking()),
    "count_tokens": lambda client: client.messages.count_tokens(
        model="claude-sonnet-5-5", messages=[{"role": "user", "content": "x"}]
    ),
    "batches.create": lambda client: client.messages.batches.create(requests=requests(1)),
    "batches.list": lambda client: client.messages.batches.list(),
    "models.retrieve": lambda client: client.models.retrieve("claude-sonnet-5-5"),
}
REFUSALS: dict[Kind, type[APIStatusError]] = {
    "rate_limited": RateLimitError,
    "spend_limit": EnforcedSpendLimitReachedError,
    "no_credit": BadRequestError,
    "usage_limit": BadRequestError,
    "server_error": InternalServerError,
    "overloaded": OverloadedError,
}


@pytest.mark.parametrize("endpoint", CALLS)
@pytest.mark.parametrize("kind", REFUSALS)
def test_an_endpoint_refuses_and_does_nothing(
    fake: FakeAnthropic, client: Anthropic, endpoint: str, kind: Kind
) -> None:
    """After these a request may be sent again."""
    fake.inject(Fault(endpoint="*", kind=kind))

    with pytest.raises(REFUSALS[kind]):
        CALLS[endpoint](client)
    bill = fake.bill()

    assert (bill.lines, bill.batches) == ((), ())
    assert CALLS[endpoint](client)


def test_a_page_may_come_in_place_of_an_answer(fake: FakeAnthropic, client: Anthropic) -> None:
    """Nothing is done, though the status says so; and the SDK hands the page on."""
    fake.inject(Fault(endpoint="messages", kind="page"))

    came = client.messages.create(**asking())

    assert str(came) == "<html>Sign in</html>"
    assert fake.bill().lines == ()


def test_a_rate_limit_tells_how_long_to_wait(fake: FakeAnthropic, client: Anthropic) -> None:
    """A reached spend limit does not: waiting does not help."""
    fake.inject(
        Fault(endpoint="messages", kind="rate_limited", retry_after_s=7),
        Fault(endpoint="messages", kind="spend_limit"),
    )

    with pytest.raises(RateLimitError) as limited:
        client.messages.create(**asking())
    with pytest.raises(RateLimitError) as spent:
        client.messages.create(**asking())

    assert limited.value.response.headers["retry-after"] == "7"
    assert limited.value.error_code is None
    assert "retry-after" not in spent.value.response.headers
    assert spent.value.error_code == "enforced_spend_limit_reached"


def test_faults_wait_for_their_turn(fake: FakeAnthropic, client: Anthropic) -> None:
    """The third poll fails, and the fourth; another endpoint does not."""
    fake.inject(Fault(endpoint="batches.list", kind="server_error", n=2, skip=2))
    statuses = []

    for _ in range(5):
        try:
            client.messages.batches.list()
            statuses.append(200)
        except InternalServerError as error:
            statuses.append(error.status_code)
        client.messages.create(**asking())

    assert statuses == [200, 200, 500, 500, 200]


@pytest.mark.parametrize(
    ("kind", "n_batches"),
    [("cut_before", 0), ("cut_after", 1), ("cut_half", 1), ("error_after", 1), ("too_late", 1)],
)
@pytest.mark.usefixtures("impatient")
def test_an_answer_that_is_lost_leaves_it_open_whether_the_batch_was_created(
    fake: FakeAnthropic, client: Anthropic, kind: Kind, n_batches: int
) -> None:
    """The client sees an error in each case, and cannot tell them apart."""
    fake.inject(Fault(endpoint="batches.create", kind=kind))

    with pytest.raises((APIConnectionError, InternalServerError)):
        client.messages.batches.create(requests=requests(2))

    assert len(fake.bill().batches) == n_batches
    assert len(fake.bill().paid) == 2 * n_batches


def test_the_sdk_that_sends_again_pays_twice(fake: FakeAnthropic) -> None:
    """Why `max_retries=0`: no idempotency key is sent with a batch."""
    fake.inject(Fault(endpoint="batches.create", kind="cut_after", n=2))

    with client_of(fake.url, max_retries=1) as client, pytest.raises(APIConnectionError):
        client.messages.batches.create(requests=requests(1))
    bill = fake.bill()

    assert bill.n_paid_by_custom_id == {"q-0": 2}
    assert [call.retry_count for call in bill.posts] == ["0", "1"]
    assert {call.idempotency_key for call in bill.posts} == {None}
    assert len({batch.body_digest for batch in bill.batches}) == 1


def test_half_a_request_asks_for_nothing(fake: FakeAnthropic, client: Anthropic) -> None:
    """A client that is killed as it sends has not bought anything."""
    where = urlsplit(fake.url)
    with socket.create_connection((str(where.hostname), where.port or 0)) as sending:
        sending.sendall(b"POST /v1/messages/batches HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
        sending.shutdown(socket.SHUT_WR)
        answered = sending.recv(1)

    assert answered == b""
    assert fake.bill().calls == ()
    assert client.messages.create(**asking()).stop_reason == "end_turn"


def test_a_late_answer_comes(fake: FakeAnthropic, client: Anthropic) -> None:
    """There is time to kill the client after the batch was accepted."""
    fake.inject(Fault(endpoint="batches.create", kind="late", delay_s=0.2))
    began_at = time.monotonic()

    batch = client.messages.batches.create(requests=requests(1))

    assert time.monotonic() - began_at >= 0.2
    assert fake.bill().batches[0].batch_id == batch.id


@pytest.mark.usefixtures("impatient")
def test_a_late_answer_is_lost_to_a_client_that_gives_up(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """The SDK calls it a timeout."""
    fake.inject(Fault(endpoint="messages", kind="too_late"))

    with pytest.raises(APITimeoutError):
        client.messages.create(**asking())

    assert len(fake.bill().paid) == 1


def test_results_are_cut_in_the_middle_of_a_line(fake: FakeAnthropic, client: Anthropic) -> None:
    """What came before the cut is whole; the rest can be read again."""
    batch = ended(client, client.messages.batches.create(requests=requests(40)))
    fake.inject(Fault(endpoint="batches.results", kind="cut_half"))
    came: list[MessageBatchIndividualResponse] = []

    with pytest.raises(httpx2.RemoteProtocolError):
        came.extend(client.messages.batches.results(batch.id))
    again = results(client, batch)

    assert len(again) == 40


def test_results_may_end_too_early_without_a_sign(fake: FakeAnthropic, client: Anthropic) -> None:
    """Only the counts of the batch tell that some are missing."""
    batch = ended(client, client.messages.batches.create(requests=requests(10)))
    fake.inject(Fault(endpoint="batches.results", kind="cut_quietly"))

    assert 0 < len(results(client, batch)) < batch.request_counts.succeeded
    assert len(results(client, batch)) == batch.request_counts.succeeded


def test_results_may_pause(fake: FakeAnthropic, client: Anthropic) -> None:
    """There is time to kill the client in the middle of them."""
    batch = ended(client, client.messages.batches.create(requests=requests(10)))
    fake.inject(Fault(endpoint="batches.results", kind="pause_half", delay_s=0.2))
    began_at = time.monotonic()

    came = results(client, batch)

    assert len(came) == 10
    assert time.monotonic() - began_at >= 0.2


SHARES = Shares(
    errored=0.1,
    expired=0.1,
    canceled=0.1,
    refused=0.1,
    truncated=0.1,
    unreadable=0.1,
    first_attempts_only=True,
)


def outcome_of(each: MessageBatchIndividualResponse) -> str:
    """Tell what a client can see of a result."""
    if each.result.type != "succeeded":
        return each.result.type
    message = each.result.message
    text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    if message.stop_reason != "end_turn":
        return str(message.stop_reason)
    return "verdict" if "VERDICT: " in text else "unreadable"


def test_shares_of_a_batch_end_in_each_way(fake: FakeAnthropic, client: Anthropic) -> None:
    """A reply is paid for, however useless; what failed is not."""
    fake.inject(shares=SHARES)

    came = results(client, client.messages.batches.create(requests=requests(300)))
    seen = Counter(map(outcome_of, came))
    bill = fake.bill()

    wrong = ("errored", "expired", "canceled", "refusal", "max_tokens", "unreadable")
    assert all(15 <= seen[outcome] <= 50 for outcome in wrong)
    assert seen["verdict"] == bill.n_by_outcome["succeeded"]
    assert all(map(is_whole, came))
    assert len(bill.paid) == 300 - seen["errored"] - seen["expired"] - seen["canceled"]
    assert bill.n_by_outcome["refused"] == seen["refusal"]
    assert bill.n_by_outcome["truncated"] == seen["max_tokens"]


def test_a_second_attempt_may_go_well(fake: FakeAnthropic, client: Anthropic) -> None:
    """It is known by its custom_id, or by its params."""
    fake.inject(shares=SHARES)
    renamed = [
        Request(custom_id=f"again-{each['custom_id']}", params=each["params"])
        for each in requests(50)
    ]

    first = results(client, client.messages.batches.create(requests=requests(50)))
    last = results(client, client.messages.batches.create(requests=renamed))

    assert len({outcome_of(each) for each in first}) > 3
    assert {outcome_of(each) for each in last} == {"verdict"}
    assert len(fake.bill().lines) == 100


def test_shares_hold_until_they_are_cleared(fake: FakeAnthropic, client: Anthropic) -> None:
    """Unless only first attempts are spoilt, the same requests fail again and again."""
    fake.inject(shares=Shares(errored=1.0, error_type="overloaded_error"))
    first = results(client, client.messages.batches.create(requests=requests(2)))
    second = results(client, client.messages.batches.create(requests=requests(2)))
    fake.clear()
    third = results(client, client.messages.batches.create(requests=requests(2)))

    assert [outcome_of(each) for each in first + second] == ["errored"] * 4
    assert [outcome_of(each) for each in third] == ["verdict"] * 2


def test_direct_messages_are_spoilt_as_well(fake: FakeAnthropic, client: Anthropic) -> None:
    """A judge that is asked directly refuses, too."""
    fake.inject(shares=Shares(refused=1.0))

    message = client.messages.create(**asking())

    assert message.stop_reason == "refusal"
    assert message.stop_details
    assert message.content == []
    assert [line.outcome for line in fake.bill().paid] == ["refused"]
    assert is_whole(message)
