"""Batches of both makers behind gateways that spoil answers: what was paid for is received.

The real SDKs talk to the makers' fakes; only the waiting takes no time.
"""

import gzip
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from itertools import cycle, product
from typing import Any, Final

import pytest

from commands.backends.anthropic.batches import judge_batches
from commands.backends.endpoint.batches import OpenAIBatches
from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.errors import WorkInFlight
from commands.judging.judge import JudgeTask
from commands.ports import BatchJudge
from commands.spending.budget import BudgetReached
from ledger.errors import TourneyError
from ledger.events.money import Price, Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from ledger.store import Ledger
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.gateway import Gateway, Passing, Spoil, Stranger
from tests.providers.openai import MODEL, Json
from tests.providers.openai_batches.server import FakeOpenAIBatches
from tests.providers.openai_batches.service import error
from tests.support.builders.anthropic import CANARY, judge_settings
from tests.support.builders.batching import N_QUERIES, adopt, batched, batching, forget
from tests.support.builders.clock import Clock
from tests.support.builders.commands import P1, P2, record_answers
from tests.support.builders.events import NOON, STREAM, opened, prompt
from tests.support.builders.money import FlatRate

NAMES: Final = ("total", "completed", "failed", "succeeded", "errored")
at_night: Final = partial(pytest.param, marks=pytest.mark.nightly)
HEALED: Final = NOON + timedelta(minutes=5)
OPENAI: Final = JudgeSettings(
    JudgeId("gpt"), "openai-batch", MODEL, (("max_tokens", 64.0), ("temperature", "omitted"))
)


@dataclass
class Maker:
    """A maker behind a gateway, and what it bills."""

    judge: JudgeSettings
    port: BatchJudge
    paid: Callable[[], Counter[str]]


Making = Callable[..., Any]


def in_turn(*spoils: Spoil) -> Spoil:
    """Return what spoils each answer in another of these ways, so that a run meets them all."""
    turns = cycle(spoils)

    def spoil(passing: Passing) -> None:
        next(turns)(passing)

    return spoil


def dated(spoil: Spoil, now: Callable[[], datetime]) -> Spoil:
    """Return the same, with the time by a maker's clock."""

    def spoil_dated(passing: Passing) -> None:
        passing.headers["date"] = format_datetime(now(), usegmt=True)
        spoil(passing)

    return spoil_dated


@contextmanager
def anthropic(spoil: Spoil, now: Callable[[], datetime]) -> Iterator[Maker]:
    """Give Anthropic, whose batches end at the second look."""
    with (
        FakeAnthropic(now=now) as fake,
        Gateway(fake.port, dated(spoil, now)) as gateway,
        client_of(f"http://127.0.0.1:{gateway.port}") as client,
    ):
        judge = judge_settings()
        port = judge_batches(client, judge, cache="off")
        yield Maker(judge, port, lambda: Counter(dict(fake.bill().n_paid_by_custom_id)))


@contextmanager
def openai(spoil: Spoil, now: Callable[[], datetime]) -> Iterator[Maker]:
    """Give OpenAI, whose batches end when they are looked at."""
    with FakeOpenAIBatches() as fake, Gateway(fake.port, dated(spoil, now)) as gateway:
        fake.service.ends_by_looking = True
        fake.service.now = now
        port = OpenAIBatches(OPENAI, Endpoint(gateway.url, "judge", CANARY))
        yield Maker(OPENAI, port, lambda: billed_by(fake))


def billed_by(fake: FakeOpenAIBatches) -> Counter[str]:
    """Return what is billed once every batch has ended, those that nobody looks at included."""
    fake.end_batches()
    return Counter(fake.service.billed)


@pytest.fixture(params=[anthropic, openai])
def making(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Making:
    """Give what makes a maker; the SDKs' own attempts follow each other at once."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    made: Making = request.param
    return made


def opening(ledger: Ledger, maker: Maker) -> Recorder:
    """Return a tournament of two entrants and two prompts that the maker judges."""
    bank = [prompt("p1"), prompt("p2")]
    return record_answers(Recorder(ledger, STREAM), opened(prompts=bank, judges=[maker.judge]))


def judge_all(
    recorder: Recorder,
    maker: Maker,
    clock: Clock,
    *,
    waits: bool = True,
    most_queries: int = 100,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Run a command that judges what is open."""
    how = batching(clock, waits=waits, most_queries=most_queries, tell=tell)
    task = JudgeTask(maker.judge, [P1, P2], 1, how.pricing_of(maker.judge))
    batched(recorder, task, lambda _: maker.port, how)


def require_paid_once(ledger: Ledger, maker: Maker) -> None:
    """Compare the bill with the ledger: each query was paid for once, and has its verdict."""
    recorder = Recorder(ledger, STREAM)
    assert len(recorder.state.verdicts) == N_QUERIES
    assert set(maker.paid().values()) == {1}
    assert set(maker.paid()) == set(recorder.state.verdicts)
    assert recorder.state.open_batches == ()


def _page(passing: Passing) -> None:
    passing.body = b"<html>\n<body>\nSign in\n</body>\n</html>"


def _empty(passing: Passing) -> None:
    passing.body = b""


def _json_error(passing: Passing) -> None:
    passing.body = b'{"error": {"type": "overloaded", "message": "Try again later"}}'


def _half(passing: Passing) -> None:
    passing.body = passing.body[: len(passing.body) // 2]


def _whole_lines(passing: Passing) -> None:
    passing.body = b"".join(passing.body.splitlines(keepends=True)[:2])


def _cut_gzip(passing: Passing) -> None:
    passing.headers["content-encoding"] = "gzip"
    whole = gzip.compress(passing.body)
    passing.body = whole[: len(whole) // 2]


def _damaged_gzip(passing: Passing) -> None:
    _cut_gzip(passing)
    passing.body = passing.body[:12] + b"\xff" * 20


BAD_DOWNLOADS = (_whole_lines, _damaged_gzip, _page, _half, _cut_gzip, _empty, _json_error)


@pytest.mark.parametrize("spoils", [BAD_DOWNLOADS, *(at_night((each,)) for each in BAD_DOWNLOADS)])
@pytest.mark.parametrize("waits", [True, at_night(False)])
def test_bad_downloads_pay_nothing_twice_and_verdicts_are_complete_once_they_heal(
    ledger: Ledger, clock: Clock, making: Making, spoils: tuple[Spoil, ...], *, waits: bool
) -> None:
    """What was read counts: before all of it is here, the provider is not answering."""
    spoil = in_turn(*spoils)

    def until_healed(passing: Passing) -> None:
        if passing.is_download and clock.now() < HEALED:
            spoil(passing)

    with making(until_healed, clock.now) as maker:
        recorder = opening(ledger, maker)
        while clock.now() < HEALED and not waits:
            with pytest.raises(WorkInFlight):
                judge_all(recorder, maker, clock, waits=False)
            clock.sleep(100.0)
        judge_all(recorder, maker, clock)

        assert clock.now() >= HEALED
        require_paid_once(ledger, maker)


def test_results_that_are_compressed_are_read(ledger: Ledger, clock: Clock, making: Making) -> None:
    """Some servers keep their files compressed, and some of them do not say so."""
    n_downloads = 0

    def compress(passing: Passing) -> None:
        nonlocal n_downloads
        if passing.is_download:
            n_downloads += 1
            passing.body = gzip.compress(passing.body)
            if n_downloads == 1:
                passing.headers["content-encoding"] = "gzip"

    with making(compress, clock.now) as maker:
        judge_all(opening(ledger, maker), maker, clock, most_queries=2)

        require_paid_once(ledger, maker)
    assert n_downloads == 2


def _edited(passing: Passing, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change each batch that an answer tells of."""
    if passing.is_download or not passing.body.startswith(b"{"):
        return
    told = json.loads(passing.body)
    for each in told.get("data", [told]):
        if "request_counts" in each:
            edit(each)
    passing.body = json.dumps(told).encode()


MISCOUNTED: Final[tuple[tuple[object, bool], ...]] = (
    (None, False),
    ({"total": N_QUERIES, "completed": N_QUERIES + 1, "succeeded": N_QUERIES + 1}, True),
    ({"total": "4", "completed": "4", "succeeded": "4"}, False),
    ("", True),
    ([], True),
    (dict.fromkeys(NAMES), True),
    (dict.fromkeys(NAMES, 0), True),
    ({"completed": N_QUERIES, "succeeded": N_QUERIES}, False),
    ({"total": -1, "completed": -4, "succeeded": -4}, True),
    ({"total": 10**30, "completed": 10**30, "succeeded": 10**30}, False),
)


@pytest.mark.parametrize("miscounted", [MISCOUNTED, *(at_night((each,)) for each in MISCOUNTED)])
def test_counts_that_do_not_add_up_stop_no_batch(
    ledger: Ledger, clock: Clock, making: Making, miscounted: tuple[tuple[object, bool], ...]
) -> None:
    """What the file says counts; a bad download is none, whatever the counts."""
    told_of = cycle(miscounted)

    def miscount(batch: dict[str, Any]) -> None:
        batch["request_counts"], has_metadata = next(told_of)
        if not has_metadata:
            batch["metadata"] = None

    def spoil(passing: Passing) -> None:
        _edited(passing, miscount)
        if passing.is_download and clock.now() < HEALED:
            _page(passing)

    told: list[str] = []
    with making(spoil, clock.now) as maker:
        judge_all(opening(ledger, maker), maker, clock, tell=told.append)

        require_paid_once(ledger, maker)
    assert any("ended: 4 answered, 0 not" in line for line in told)


@pytest.mark.parametrize("nothing", ["", at_night(None)])
def test_what_is_absent_may_be_spelt_as_anything_blank(
    ledger: Ledger, clock: Clock, making: Making, nothing: object
) -> None:
    """A clean batch of OpenAI's names its file of errors ""; the SDK takes no such id."""
    names = ("error_file_id", "errors", "metadata", "expires_at", "created_at", "results_url")

    def blank(batch: dict[str, Any]) -> None:
        batch.update(dict.fromkeys(names, nothing))

    with making(lambda passing: _edited(passing, blank), clock.now) as maker:
        judge_all(opening(ledger, maker), maker, clock)

        require_paid_once(ledger, maker)


@pytest.mark.parametrize(
    ("spoil", "counted"),
    [
        (_whole_lines, False),
        (in_turn(_page, _whole_lines), True),
        *(at_night(*each) for each in product((_page, _half, _cut_gzip), (True, False))),
    ],
)
def test_what_an_expired_batch_answered_is_not_taken_for_unanswered(
    ledger: Ledger,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Spoil,
    *,
    counted: bool,
) -> None:
    """It was billed; what has no line in whole files was not, and is asked again."""
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def until_healed(passing: Passing) -> None:
        if not counted:
            _edited(passing, lambda batch: batch.update(request_counts=None))
        if passing.is_download and clock.now() < HEALED:
            spoil(passing)

    with FakeOpenAIBatches() as fake, Gateway(fake.port, dated(until_healed, clock.now)) as gateway:
        fake.service.now = clock.now
        port = OpenAIBatches(OPENAI, Endpoint(gateway.url, "judge", CANARY))
        maker = Maker(OPENAI, port, lambda: billed_by(fake))
        recorder = opening(ledger, maker)
        with pytest.raises(WorkInFlight):
            judge_all(recorder, maker, clock, waits=False)
        fake.end_batches("cancelled", n_done=3)
        fake.service.ends_by_looking = True
        judge_all(recorder, maker, clock)

        require_paid_once(ledger, maker)


STATUSES: Final = (
    *(400, 404, 429, 503),  # of four orders, by day
    *(401, 402, 403, 405, 408, 409, 413, 418, 422, 500, 501, 502, 504, 529),
)


@pytest.mark.parametrize("statuses", [STATUSES[:4], *(at_night((n,)) for n in STATUSES)])
def test_an_order_that_was_taken_and_refused_is_paid_once(
    ledger: Ledger, clock: Clock, making: Making, statuses: tuple[int, ...]
) -> None:
    """A gateway may answer anything for what it passed on: the batch is looked for first."""
    answers = iter(statuses)

    def refuse(passing: Passing) -> None:
        if passing.is_order and (status := next(answers, None)):
            passing.status, passing.body = status, b'{"error": {"message": "no"}}'

    with making(refuse, clock.now) as maker:
        judge_all(opening(ledger, maker), maker, clock, most_queries=1)

        require_paid_once(ledger, maker)
    assert next(answers, None) is None


CAP_USD: Final = 2.5  # for queries at a dollar each


@dataclass(frozen=True)
class DollarEach(FlatRate):
    """Prices every query at a dollar, before it is answered and after."""

    def price_of(self, usage: Usage) -> Price:
        """Return the price at which the tokens that were used cost a dollar."""
        return Price(1e6 / usage.n_input, 0.0, 0.0, 0.0, 0.0, table="test")


def judge_capped(recorder: Recorder, maker: Maker, clock: Clock) -> None:
    """Run a command that judges what the cap allows, a query a batch."""
    how = batching(clock, most_queries=1, pricing=DollarEach(1.0))
    task = JudgeTask(maker.judge, [P1, P2], 1, how.pricing_of(maker.judge), max_usd=CAP_USD)
    batched(recorder, task, lambda _: maker.port, how)


@pytest.mark.parametrize(
    ("status", "refused"),
    [
        (400, "orders"),
        (503, "all after an order"),
        *(
            at_night(*each)
            for each in product((401, 404, 409, 429, 500), ("orders", "all after an order"))
        ),
        *(at_night(status, "all") for status in (400, 401, 404, 429, 503)),
    ],
)
def test_no_gateway_passes_a_cap_of_batches(
    ledger: Ledger, clock: Clock, making: Making, status: int, refused: str
) -> None:
    """All that is said of batches is refused for five minutes, orders for good."""
    n_orders = 0

    def refuse(passing: Passing) -> None:
        nonlocal n_orders
        n_orders += passing.is_order
        is_all = refused == "all" or (refused == "all after an order" and n_orders > 0)
        is_refused = is_all and "/batches" in passing.path and clock.now() < HEALED
        if passing.is_order or is_refused:
            passing.status, passing.body = status, b'{"error": {"message": "no"}}'

    with making(refuse, clock.now) as maker:
        recorder = opening(ledger, maker)
        while clock.now() < HEALED:
            with suppress(TourneyError):
                judge_capped(recorder, maker, clock)
            clock.sleep(200.0)
        with pytest.raises(BudgetReached):
            judge_capped(recorder, maker, clock)
        paid = maker.paid()

    assert paid.total() == len(paid) == int(CAP_USD)
    assert set(paid) == set(recorder.state.verdicts)
    assert recorder.state.open_batches == ()


@pytest.mark.parametrize("hours", [-72, 23, *map(at_night, (-23, 72))])
def test_a_clock_that_is_off_pays_no_batch_twice(
    ledger: Ledger, clock: Clock, making: Making, hours: int
) -> None:
    """The answer to the order was lost: the batch is looked for by the provider's clock."""
    skew, n_orders = timedelta(hours=hours), 0

    def now() -> datetime:
        return clock.now() + skew

    def lose(passing: Passing) -> None:
        nonlocal n_orders
        n_orders += passing.is_order
        passing.is_cut = passing.is_order and n_orders == 1

    with making(lose, now) as maker:
        judge_all(opening(ledger, maker), maker, clock)

        require_paid_once(ledger, maker)


def test_the_key_goes_to_nobody_whom_an_answer_names(
    ledger: Ledger, clock: Clock, making: Making
) -> None:
    """A batch names the address of its results: a gateway's names another company's."""
    with Stranger() as stranger:
        there = f"http://localhost:{stranger.port}/results"

        def point_away(passing: Passing) -> None:
            _edited(passing, lambda batch: batch.update(results_url=there))

        with making(point_away, clock.now) as maker:
            judge_all(opening(ledger, maker), maker, clock)

            require_paid_once(ledger, maker)
    assert stranger.seen == []


def test_a_redirect_takes_no_key_along(ledger: Ledger, clock: Clock, making: Making) -> None:
    """Whoever can answer for a provider could have it otherwise."""
    with Stranger() as stranger:
        n_downloads = 0

        def send_away(passing: Passing) -> None:
            nonlocal n_downloads
            n_downloads += passing.is_download
            if passing.is_download and n_downloads == 1:
                passing.status = 302
                passing.headers["location"] = f"http://127.0.0.1:{stranger.port}/elsewhere"

        with making(send_away, clock.now) as maker:
            judge_all(opening(ledger, maker), maker, clock)

            require_paid_once(ledger, maker)
    assert not [each for each in stranger.seen if CANARY in str(each)]


def test_a_batch_that_was_given_up_is_taken_up_again_and_paid_once(
    ledger: Ledger, clock: Clock, making: Making
) -> None:
    """Earlier versions ended it after three bad downloads; its results are there all the same."""
    spoil = in_turn(_page, _half)

    def until_healed(passing: Passing) -> None:
        if passing.is_download and clock.now() < HEALED:
            spoil(passing)

    with making(until_healed, clock.now) as maker:
        recorder = opening(ledger, maker)
        for _ in range(3):
            with pytest.raises(WorkInFlight):
                judge_all(recorder, maker, clock, waits=False)
        (batch,) = recorder.state.open_batches
        assert batch.submitted is not None
        name = batch.submitted.provider_batch_id
        forget(recorder, maker.port, name)
        clock.moment = HEALED
        adopt(recorder, maker.port, name)
        judge_all(recorder, maker, clock)

        require_paid_once(ledger, maker)


@pytest.mark.parametrize("has_field", [True, False])
def test_learning_what_a_server_takes_uses_up_no_tries(
    ledger: Ledger, clock: Clock, *, has_field: bool
) -> None:
    """A query may go without several parameters, one after another, though none is retried."""
    names = ("max_completion_tokens", "temperature")

    def why_refused(body: Json) -> Json | None:
        name = next((each for each in names if each in body), None)
        told = name if has_field else None
        return None if name is None else error(f"Unsupported parameter: {name!r}", param=told)

    with FakeOpenAIBatches() as fake:
        fake.service.ends_by_looking, fake.service.why_refused = True, why_refused
        port = OpenAIBatches(OPENAI, Endpoint(fake.url, "judge", CANARY))
        maker = Maker(OPENAI, port, lambda: billed_by(fake))
        recorder, how = opening(ledger, maker), batching(clock)
        task = JudgeTask(OPENAI, [P1, P2], 0, how.pricing_of(maker.judge))
        batched(recorder, task, lambda _: port, how)

        assert len(fake.service.batches) == 3
        require_paid_once(ledger, maker)
    assert [each.parameter for each in recorder.state.refused_parameters] == [*names]
