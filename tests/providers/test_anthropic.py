"""What the fake enforces and bills, through the real SDK: tests of money rest on it.

How it fails is held by the contract of faults that all batch judges pass.
"""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from anthropic import Anthropic, AuthenticationError, BadRequestError, OverloadedError
from anthropic.types import Message, TextBlock
from anthropic.types.messages.batch_create_params import Request

from tests.providers.anthropic.batches import Pace
from tests.providers.anthropic.exchange import Fault, Shares
from tests.providers.anthropic.process import FakeProcess
from tests.providers.anthropic.prompt import digest_of
from tests.providers.anthropic.requests import (
    MODEL,
    VERDICT_SCHEMA,
    asking,
    client_of,
    ended,
    is_whole,
    requests,
    results,
)
from tests.providers.anthropic.server import FakeAnthropic

MARK = {"type": "ephemeral"}
MARKED = {"type": "text", "text": "x", "cache_control": MARK}
HOUR = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
OPEN_SCHEMA = {**VERDICT_SCHEMA, "additionalProperties": True}
SIZED_SCHEMA = {"type": "array", "items": {"type": "string", "maxLength": 5}}

WRONG: dict[str, dict[str, object]] = {
    "temperature: Extra inputs": {"temperature": 0.0},
    "tempreature: Extra inputs": {"tempreature": 0.0},
    "max_tokens: Field required": {"max_tokens": None},
    "max_tokens: 200000 > 128000": {"max_tokens": 200_000},
    "model: Field required": {"model": None},
    "messages: Field required": {"messages": None},
    "messages.0: text content blocks": {"messages": [{"role": "user", "content": ""}]},
    "messages.0.role": {"messages": [{"role": "judge", "content": "x"}]},
    "first message must use": {"messages": [{"role": "assistant", "content": "x"}]},
    "system: Input": {"system": 5},
    "A maximum of 4 blocks": {"system": [MARKED] * 5},
    "must not come after": {"system": [MARKED, HOUR]},
    "'additionalProperties'": {
        "output_config": {"format": {"type": "json_schema", "schema": OPEN_SCHEMA}}
    },
    "property 'maxLength'": {
        "output_config": {"format": {"type": "json_schema", "schema": SIZED_SCHEMA}}
    },
    "output_config.effort": {"output_config": {"effort": "utmost"}},
    "thinking: Input": {"thinking": {"type": "aloud"}},
}


def text_of(message: Message) -> str:
    """Return what a message says; its thinking, if any, comes before."""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


@pytest.mark.parametrize("said", WRONG)
def test_wrong_params_are_refused_at_once_in_a_message(client: Anthropic, said: str) -> None:
    """One direct request of a batch's shape shows what would err in all of the batch."""
    with pytest.raises(BadRequestError) as refused:
        client.messages.create(**asking(), extra_body=WRONG[said])

    assert said in str(refused.value.api_message)
    assert refused.value.type == "invalid_request_error"


def test_wrong_params_err_in_a_batch_only_when_it_ends(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """A batch of them is accepted, and comes to nothing hours later; it costs nothing."""
    wrong: list[dict[str, object]] = [*WRONG.values(), {"stream": True}, {"speed": "fast"}]
    sent: list[Request] = [
        {"custom_id": f"w{place}", "params": asking(**fields)} for place, fields in enumerate(wrong)
    ]

    batch = client.messages.batches.create(requests=sent)
    came = [each.result for each in results(client, batch)]

    assert {result.type for result in came} == {"errored"}
    assert len(came) == len(wrong)
    assert fake.bill().paid == ()


@pytest.mark.parametrize("custom_id", ["", "a.b", "a b", "é", "x" * 65, "a\n"])
def test_a_custom_id_must_fit_its_pattern(client: Anthropic, custom_id: str) -> None:
    """Ids that are made of names hold dots and slashes before they are looked at."""
    with pytest.raises(BadRequestError, match=r"requests\.0\.custom_id"):
        client.messages.batches.create(requests=[{"custom_id": custom_id, "params": asking()}])


def test_a_batch_has_requests_each_with_an_id_of_its_own(client: Anthropic) -> None:
    """The API tells results apart by it alone."""
    with pytest.raises(BadRequestError, match="not unique"):
        client.messages.batches.create(requests=requests(1) * 2)
    with pytest.raises(BadRequestError, match="at least 1 item"):
        client.messages.batches.create(requests=[])


def test_a_judge_gives_the_same_verdict_to_the_same_question(client: Anthropic) -> None:
    """A rerun through the fake must be able to end as the first run did."""
    first = client.messages.create(**asking())
    second = client.messages.create(**asking())

    assert re.search(r"\n\nVERDICT: (A|B|TIE)$", text_of(first))
    assert text_of(second) == text_of(first)
    assert second.id != first.id
    assert is_whole(first)


def test_usage_is_counted_in_quarters_of_characters(client: Anthropic) -> None:
    """Costs that tests compute must be computable by hand."""
    message = client.messages.create(**asking("x" * 401))
    counted = client.messages.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "x" * 401}]
    )

    assert message.usage.input_tokens == counted.input_tokens == 101
    assert message.usage.output_tokens == -(-len(text_of(message)) // 4)


def test_the_models_that_always_think_do_so_before_they_write(client: Anthropic) -> None:
    """A reader of content[0] would take the thinking for the reply."""
    asked = asking(model="claude-opus-5-5", output_config={"effort": "low"})

    message = client.messages.create(**asked)

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.usage.output_tokens_details
    assert message.usage.output_tokens_details.thinking_tokens == 40
    assert is_whole(message)


def test_a_prefix_is_written_once_and_lives_for_minutes(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """What caching saves is told by the usage alone; a run that pauses pays again."""
    system = [{"type": "text", "text": "Judge factuality. " * 200, "cache_control": MARK}]
    used = []
    for minutes in (0, 4, 4, 6):
        fake.advance(timedelta(minutes=minutes))
        usage = client.messages.create(**asking(system=system)).usage
        used.append((usage.cache_creation_input_tokens, usage.cache_read_input_tokens))

    assert used == [(900, 0), (0, 900), (0, 900), (900, 0)]


def test_a_batch_is_created_polled_read_and_billed_once(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """The whole way that a run goes when nothing is amiss; reading again costs nothing."""
    sent = requests(20)
    batch = client.messages.batches.create(requests=sent)
    looks = [client.messages.batches.retrieve(batch.id) for _ in range(2)]
    came = results(client, looks[1])
    results(client, batch)
    bill = fake.bill()

    assert [look.processing_status for look in looks] == ["in_progress", "ended"]
    assert [look.request_counts.processing for look in looks] == [20, 0]
    assert sorted(each.custom_id for each in came) == sorted(each["custom_id"] for each in sent)
    assert [each.custom_id for each in came] != [each["custom_id"] for each in sent]
    assert all(map(is_whole, [batch, *looks, *came]))
    assert bill.n_paid_by_digest == {digest_of({**each["params"]}): 1 for each in sent}
    used = [each.result.message.usage for each in came if each.result.type == "succeeded"]
    assert bill.total.n_input == sum(usage.input_tokens for usage in used)


def test_a_batch_that_nobody_polls_is_billed_all_the_same(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """An orphan of a lost answer is the case in which something is paid twice."""
    client.messages.batches.create(requests=requests(3))
    before = fake.bill(settle=False)

    assert (before.n_open_requests, before.paid) == (3, ())
    assert len(fake.bill().paid) == 3


def test_a_canceled_batch_keeps_what_was_done() -> None:
    """What the cancel came too late for is paid."""
    pace = Pace(ends_after_retrievals=None, share_done_at_cancel=0.4)
    with FakeAnthropic(pace=pace) as fake, client_of(fake.url) as client:
        batch = client.messages.batches.create(requests=requests(5))
        canceling = client.messages.batches.cancel(batch.id)
        batch = ended(client, batch)
        bill = fake.bill()

    assert canceling.processing_status == "canceling"
    assert (batch.request_counts.succeeded, batch.request_counts.canceled) == (2, 3)
    assert len(bill.paid) == 2


def test_a_reply_is_paid_for_however_useless_and_a_failure_is_not(
    fake: FakeAnthropic, client: Anthropic
) -> None:
    """Shares of a batch end in each way."""
    share = 0.15
    fake.inject(
        shares=Shares(
            errored=share, expired=share, refused=share, truncated=share, unreadable=share
        )
    )

    came = results(client, client.messages.batches.create(requests=requests(100)))
    bill = fake.bill()

    assert all(map(is_whole, came))
    assert len(bill.n_by_outcome) == 6
    assert min(bill.n_by_outcome.values()) >= 5
    n_free = bill.n_by_outcome["errored"] + bill.n_by_outcome["expired"]
    assert len(bill.paid) == 100 - n_free
    assert sum(each.result.type == "succeeded" for each in came) == 100 - n_free


def test_only_the_right_key_is_taken_and_none_is_kept() -> None:
    """A canary key must be found nowhere, not in the fake's books either."""
    with FakeAnthropic(api_key="canary") as fake, client_of(fake.url) as client:
        with pytest.raises(AuthenticationError):
            client.messages.create(**asking())
        client.with_options(api_key="canary").messages.create(**asking())

        assert "canary" not in repr(fake.bill())


def test_a_process_serves_and_is_told_what_to_do(tmp_path: Path) -> None:
    """A client may be killed without the fake, and the bill is read from outside."""
    wrong = Fault(endpoint="everywhere", kind="cut_after")  # type: ignore[arg-type]  # wrong
    with (
        FakeProcess(tmp_path, "--ends-after-retrievals", "-1") as fake,
        client_of(fake.url) as client,
    ):
        with pytest.raises(RuntimeError, match="everywhere"):
            fake.inject(wrong)
        fake.inject(Fault(endpoint="messages", kind="overloaded"), shares=Shares(expired=1.0))
        with pytest.raises(OverloadedError):
            client.messages.create(**asking())
        fake.clear()
        batch = client.messages.batches.create(requests=requests(3))
        is_open = fake.bill(settle=False).n_open_requests == 3
        fake.end_batches()

        assert is_open
        assert len(results(client, batch)) == 3
        assert fake.bill().n_paid_by_custom_id == {"q-0": 1, "q-1": 1, "q-2": 1}
        assert fake.bill(lines=False).lines == []
