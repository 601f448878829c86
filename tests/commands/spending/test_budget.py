"""The cap on spending: nothing is sent that could go beyond it, nothing billed is left out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commands.decisions.recorder import Recorder
from commands.errors import ProviderError, Refused
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import Answer, NoReply, no_progress
from commands.spending.budget import BudgetReached, Exposure, affordable_queries
from commands.spending.pricing import FREE_OF_CHARGE
from ledger.events.money import Usage
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.progress import AskingRules, OpenQuery, open_queries
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import USED, ended, planned_batch, sent
from tests.support.builders.commands import JUDGE, failed, record_answers, reply
from tests.support.builders.events import STREAM, judge, key, opened, prompt, responses
from tests.support.builders.money import FlatRate
from tests.support.scripted import ScriptedJudge
from tests.support.specification import after

FOUR_PROMPTS = [prompt(f"p{n}") for n in range(4)]
OPENED = opened(prompts=FOUR_PROMPTS)
QUERIES = open_queries(
    after(*OPENED, *responses(after(*OPENED))),
    [each.prompt_id for each in FOUR_PROMPTS],
    JUDGE,
    AskingRules(retries=0),
)


def affordable(
    cap_usd: float, usd: float | None = 1.0, *, spent: float = 0.0, in_flight: float = 0.0
) -> Sequence[OpenQuery]:
    """Return what may be sent of eight queries."""
    return affordable_queries(QUERIES, FlatRate(usd), cap_usd=cap_usd, bound_usd=spent + in_flight)


def test_the_first_queries_that_fit_are_asked() -> None:
    """A portion that is paid for is better than none."""
    assert affordable(3.5) == QUERIES[:3]
    assert affordable(8.0) == QUERIES


def test_what_is_spent_and_what_is_in_flight_is_not_there_any_more() -> None:
    """A cap is of the tournament, not of the run; a batch on its way is as good as paid."""
    assert affordable(8.0, spent=4.0, in_flight=2.0) == QUERIES[:2]


def test_a_cap_that_is_reached_stops_before_the_next_query() -> None:
    """The message says how much there was, and how to go on."""
    said = (
        r"^the cap is \$3\.00: \$2\.5000 is spent, in flight or perhaps billed, and the next query"
        r" may cost \$1\.0000; raise --max-usd or \[judge\] max_usd to go on$"
    )

    with pytest.raises(BudgetReached, match=said) as caught:
        affordable(3.0, spent=2.0, in_flight=0.5)

    assert (caught.value.cap_usd, caught.value.bound_usd) == (3.0, 2.5)
    assert caught.value.exit_code == 5


def test_a_cap_on_an_unknown_price_refuses() -> None:
    """Nothing is priced at nothing for want of a price."""
    with pytest.raises(Refused, match="this judge has no price; add one with"):
        affordable(100.0, usd=None)


def test_a_judge_on_this_machine_is_never_refused() -> None:
    """It costs nothing, so any cap holds."""
    affordable = affordable_queries(QUERIES, FREE_OF_CHARGE, cap_usd=0.01, bound_usd=0.01)

    assert affordable == QUERIES
    assert FREE_OF_CHARGE.expected_usd([each.asked for each in QUERIES]) == 0.0
    assert FREE_OF_CHARGE.price_of(Usage(n_input=1, n_output=1)) is None


@given(
    cap=st.floats(min_value=0.01, max_value=20),
    usd=st.floats(min_value=0.01, max_value=5),
    spent=st.floats(min_value=0, max_value=20),
)
def test_what_is_affordable_never_exceeds_the_cap(cap: float, usd: float, spent: float) -> None:
    """Hard means hard; and as much as fits is asked."""
    try:
        n = len(affordable(cap, usd, spent=spent))
    except BudgetReached:
        n = 0

    assert n == 0 or spent + n * usd <= cap + 1e-9
    assert n == len(QUERIES) or spent + (n + 1) * usd > cap - 1e-9


EIGHT_PROMPTS = [prompt(f"p{n}") for n in range(8)]  # 16 queries
CUT = "the connection was cut; it may have been billed"
BUSY = "overloaded_error"


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants and eight prompts, all answered."""
    return record_answers(recorder, opened(prompts=EIGHT_PROMPTS))


def ask(
    recorder: Recorder,
    say: Callable[[JudgeQuery], Answer],
    *,
    max_usd: float | None = None,
    retries: int = 0,
) -> ScriptedJudge:
    """Ask about everything, a dollar each, until that is done or fails."""
    port = ScriptedJudge(say)
    prompts, rules = [each.prompt_id for each in EIGHT_PROMPTS], AskingRules(retries)
    task = JudgeTask(JUDGE, prompts, rules, lambda _: FlatRate(1.0), max_usd=max_usd)
    with pytest.raises((BudgetReached, ProviderError)):
        judge_open(recorder, task, lambda: port, on_progress=no_progress)
    return port


def cut(query: JudgeQuery) -> NoReply:
    """Leave a query unanswered, and perhaps billed."""
    return NoReply(query.query_key, "errored", CUT)


def test_what_may_have_been_billed_counts_against_the_cap(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Asked again and again it could cost many times the cap, with nothing spent on record."""
    first = ask(recorder, cut, max_usd=3.5, retries=5)
    second = ask(Recorder(ledger, STREAM), cut, max_usd=5.5)

    assert (len(first.asked), len(second.asked)) == (3, 2)
    assert recorder.state.spent_usd == 0.0


def test_a_request_that_was_surely_not_answered_costs_nothing(recorder: Recorder) -> None:
    """A provider that is too busy for a minute must not use up the budget."""
    is_busy = iter([True, True, True])

    def at_last(query: JudgeQuery) -> Answer:
        if next(is_busy, False):
            return NoReply(query.query_key, "errored", BUSY)
        return replace(reply(query.query_key), usage=USED)

    port = ask(recorder, at_last, max_usd=5.5)

    assert len(port.asked) == 3 + 5


def test_other_tournaments_have_budgets_of_their_own(ledger: Ledger, recorder: Recorder) -> None:
    """A merged ledger tells of failures that somebody else paid for."""
    lost = failed(key("query"), reason="errored", detail=CUT)
    ledger.append(StreamId("colleague"), [lost], expected_version=None)

    assert Exposure(recorder, lambda _: FlatRate(1.0)).usd() == 0.0


def test_every_judge_of_the_tournament_counts_at_its_own_price(ledger: Ledger) -> None:
    """What the pilot may have been billed for is gone when the headline's judge is asked."""
    pilot = judge("pilot", provider="anthropic", model="small")
    recorder = record_answers(
        Recorder(ledger, STREAM), opened(prompts=EIGHT_PROMPTS, judges=[JUDGE, pilot])
    )
    prices = {JUDGE: FlatRate(1.0), pilot: FlatRate(0.25)}
    lost = [
        failed(key("query"), reason="errored", detail=CUT),
        failed(key("other"), reason="errored", detail=CUT, judge="pilot"),
    ]
    ledger.append(STREAM, lost, expected_version=None)

    assert Exposure(recorder, prices.__getitem__).usd() == 1.25


def test_a_judge_that_was_asked_at_two_prices_counts_at_the_higher(ledger: Ledger) -> None:
    """Nobody knows whether a request was one of a batch, which is half the price."""
    direct, batched = (judge(provider=f"anthropic{each}") for each in ("", "-batch"))
    prices = {direct: FlatRate(1.0), batched: FlatRate(0.5)}
    for opening, each in enumerate((direct, batched), start=1):
        events = opened(prompts=EIGHT_PROMPTS, judges=[each], opening=opening)
        recorder = record_answers(Recorder(ledger, STREAM), events)
    lost = failed(key("query"), reason="errored", detail=CUT, judge=direct.judge_id)
    ledger.append(STREAM, [lost], expected_version=None)

    assert Exposure(recorder, prices.__getitem__).usd() == 1.0


@pytest.mark.usefixtures("recorder")
def test_batches_count_at_the_worst_while_they_are_in_flight(ledger: Ledger) -> None:
    """They are as good as paid, until their end tells what they cost."""
    plan = structs.replace(planned_batch(key("query")), worst_usd=2.5)
    ledger.append(STREAM, [plan], expected_version=None)
    in_flight = Exposure(Recorder(ledger, STREAM), lambda _: FlatRate(1.0)).usd()
    ledger.append(STREAM, [sent(plan.batch_key), ended(plan.batch_key)], expected_version=None)
    received = Exposure(Recorder(ledger, STREAM), lambda _: FlatRate(1.0)).usd()

    assert (in_flight, received) == (2.5, 0.0)


@pytest.mark.usefixtures("recorder")
def test_a_batch_of_unknown_price_lets_no_cap_be_kept(ledger: Ledger) -> None:
    """Whatever else is asked for might be too much."""
    ledger.append(STREAM, [planned_batch(key("query"))], expected_version=None)
    exposure = Exposure(Recorder(ledger, STREAM), lambda _: FlatRate(1.0))

    with pytest.raises(Refused, match="without a known price is in flight: a cap cannot be kept"):
        exposure.usd()


def test_a_question_of_an_older_rubric_counts_as_the_dearest_of_today(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Its text is asked no more, and the money may be gone all the same."""
    exposure = Exposure(recorder, lambda _: FlatRate(1.0))
    lost = failed(key("old"), reason="errored", detail=CUT)
    ledger.append(STREAM, [lost], expected_version=None)

    assert [exposure.usd(), exposure.usd()] == [1.0, 1.0]


def test_a_row_of_failures_that_may_have_been_billed_ends_the_run(recorder: Recorder) -> None:
    """Without a cap it would pay for every query, as often as retries allow, for nothing."""
    port = ScriptedJudge(cut)
    task = JudgeTask(JUDGE, [each.prompt_id for each in EIGHT_PROMPTS], AskingRules(retries=5))

    with pytest.raises(ProviderError, match=r"^10 requests in a row .* may have been billed"):
        judge_open(recorder, task, lambda: port, on_progress=no_progress)

    assert len(port.asked) == 10


def test_failures_with_an_answer_in_between_are_no_row(recorder: Recorder) -> None:
    """A connection that breaks now and then is worth going on with."""
    said = iter([*[True] * 9, False, *[True] * 6])
    port = ScriptedJudge(lambda query: cut(query) if next(said) else reply(query.query_key))
    task = JudgeTask(JUDGE, [each.prompt_id for each in EIGHT_PROMPTS], AskingRules(retries=0))

    done = judge_open(recorder, task, lambda: port, on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed) == (1, 15)
