"""The cap on spending: nothing is sent that could go beyond it, nothing billed is left out."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commands.decisions.recorder import Recorder
from commands.errors import ProviderError, Refused
from commands.judging.judge import JudgeTask, judge_open, resumed
from commands.ports import Answer, NoReply, no_progress
from commands.spending.budget import BudgetReached, at_risk_usd, n_affordable, strictest_cap
from ledger.events.money import Usage
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.spend import Spend, spend_of
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import USED, ended, planned_batch, sent
from tests.support.builders.commands import JUDGE, PowerCut, record_answers, reply
from tests.support.builders.events import STREAM, key, known, opened, prompt, verdict
from tests.support.builders.money import FlatRate, requests_of
from tests.support.scripted import ScriptedJudge


def affordable(cap_usd: float, usd: float = 1.0, *, spent: float = 0.0) -> int:
    """Return how many of eight requests may be sent."""
    return n_affordable([usd] * 8, cap_usd=cap_usd, bound_usd=spent)


def test_a_cap_that_is_reached_stops_before_the_next_query() -> None:
    """The message says how much there was, and how to go on."""
    said = (
        r"^the cap is \$3\.00: \$2\.5000 is spent, in flight or perhaps billed, and the next"
        r" request may cost \$1\.0000; raise --max-usd or \[judge\] max_usd to go on$"
    )

    with pytest.raises(BudgetReached, match=said) as caught:
        affordable(3.0, spent=2.5)

    assert (caught.value.cap_usd, caught.value.bound_usd) == (3.0, 2.5)
    assert caught.value.exit_code == 5
    assert affordable(8.0) == 8  # to the last cent


@given(
    cap=st.floats(min_value=0.01, max_value=20),
    usd=st.floats(min_value=0.01, max_value=5),
    spent=st.floats(min_value=0, max_value=20),
)
def test_what_is_affordable_never_exceeds_the_cap(cap: float, usd: float, spent: float) -> None:
    """Hard means hard; and as much as fits is asked."""
    try:
        n = affordable(cap, usd, spent=spent)
    except BudgetReached:
        n = 0

    assert n == 0 or spent + n * usd <= cap + 1e-9
    assert n == 8 or spent + (n + 1) * usd > cap - 1e-9


@pytest.mark.parametrize(
    ("of_judges", "of_all", "cap"),
    [
        (5.0, None, (5.0, 0.0)),
        (None, 6.0, (6.0, 2.0)),
        (5.0, 6.0, (6.0, 2.0)),  # which leaves 4 dollars for judges
        (3.0, 6.0, (3.0, 0.0)),
    ],
)
def test_of_two_caps_the_stricter_holds_by_what_entrants_have_left_of_it(
    of_judges: float | None, of_all: float | None, cap: tuple[float, float]
) -> None:
    """Entrants have cost two dollars, which count against the cap of all alone."""
    state = known(*requests_of("served", 2.0))

    assert strictest_cap(state, of_judges=of_judges, of_all=of_all) == cap


EIGHT_PROMPTS = [prompt(f"p{n}") for n in range(8)]  # 16 queries
TASK = JudgeTask(JUDGE, [each.prompt_id for each in EIGHT_PROMPTS], retries=0)
PRICED = replace(TASK, pricing=FlatRate(1.0))
CUT = "the connection was cut"
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
    task = replace(PRICED, retries=retries, max_usd=max_usd)
    with pytest.raises((BudgetReached, ProviderError)):
        judge_open(recorder, task, lambda *_: port, on_progress=no_progress)
    return port


def cut(query: JudgeQuery) -> NoReply:
    """Leave a query unanswered, and perhaps billed."""
    return NoReply(query.query_key, "errored", CUT, "perhaps billed")


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


def test_what_may_have_been_billed_is_not_sent_again_by_the_same_command(
    recorder: Recorder,
) -> None:
    """Nobody pays twice without being told; another command may."""
    said = iter([True] * 3)
    port = ScriptedJudge(lambda query: cut(query) if next(said, False) else reply(query.query_key))
    task = replace(TASK, retries=5)

    first = judge_open(recorder, task, lambda *_: port, on_progress=no_progress)
    n_asked = len(port.asked)
    later = resumed(recorder, task)
    second = judge_open(recorder, later, lambda *_: port, on_progress=no_progress)

    assert (first.n_verdicts, first.n_failed, n_asked) == (13, 3, 16)
    assert (second.n_open, second.n_verdicts) == (3, 3)


def test_a_cap_that_held_up_queries_for_a_while_is_not_reached(recorder: Recorder) -> None:
    """What was reserved for a reply at worst is free again once the reply cost less."""
    few = Usage(n_input=1, n_output=0)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=few))

    done = judge_open(
        recorder, replace(PRICED, max_usd=3.5), lambda *_: port, on_progress=no_progress
    )

    assert done.n_verdicts == 16


def test_a_request_is_settled_by_its_own_answer_although_a_merge_brought_a_verdict(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Else it would count at its worst for ever."""

    def merged_meanwhile(query: JudgeQuery) -> Answer:
        theirs = verdict(query.query_key, "B")
        ledger.append(StreamId("colleague"), [theirs], expected_version=None)
        return replace(reply(query.query_key), usage=USED)

    port = ScriptedJudge(merged_meanwhile, at_a_time=1)

    judge_open(recorder, replace(PRICED, limit=1), lambda *_: port, on_progress=no_progress)

    assert not recorder.state.under_way
    assert at_risk_usd(recorder.state) == 0.0
    assert recorder.state.spent_usd > 0.0


def test_a_request_of_a_process_that_died_counts_until_it_is_known(
    ledger: Ledger, recorder: Recorder
) -> None:
    """The answer came to nobody, and was billed."""

    def die(query: JudgeQuery) -> Answer:
        raise PowerCut(query)

    priced = replace(PRICED, max_usd=100.0)
    with pytest.raises(PowerCut):
        judge_open(recorder, priced, lambda *_: ScriptedJudge(die), on_progress=no_progress)
    second = Recorder(ledger, STREAM)
    n_under_way = at_risk_usd(second.state)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=USED))
    again = resumed(second, priced)
    judge_open(second, again, lambda *_: port, on_progress=no_progress)

    assert n_under_way == at_risk_usd(second.state) == 4.0  # as many as were sent at a time
    assert len(second.state.verdicts) == 16
    assert spent_in(ledger).total.maybe_usd == 4.0


def spent_in(ledger: Ledger) -> Spend:
    """Return the tournament's spend."""
    return fold(spend_of(STREAM), ledger.read())


@pytest.mark.usefixtures("recorder")
def test_batches_count_at_the_worst_while_they_are_in_flight(ledger: Ledger) -> None:
    """They are as good as paid, until their end tells what they cost."""
    plan = structs.replace(planned_batch(key("query")), worst_usd=2.5)
    ledger.append(STREAM, [plan], expected_version=None)
    in_flight = at_risk_usd(Recorder(ledger, STREAM).state)
    ledger.append(STREAM, [sent(plan.batch_key), ended(plan.batch_key)], expected_version=None)
    received = at_risk_usd(Recorder(ledger, STREAM).state)

    assert (in_flight, received) == (2.5, 0.0)


@pytest.mark.usefixtures("recorder")
def test_a_batch_of_unknown_price_lets_no_cap_be_kept(ledger: Ledger) -> None:
    """Whatever else is asked for might be too much."""
    ledger.append(STREAM, [planned_batch(key("query"))], expected_version=None)
    state = Recorder(ledger, STREAM).state

    with pytest.raises(Refused, match="without a known price is in flight: a cap cannot be kept"):
        at_risk_usd(state)


def test_failures_with_an_answer_in_between_are_no_row(recorder: Recorder) -> None:
    """A connection that breaks now and then is worth going on with."""
    said = iter([*[True] * 9, False, *[True] * 6])
    port = ScriptedJudge(lambda query: cut(query) if next(said) else reply(query.query_key))

    done = judge_open(recorder, TASK, lambda *_: port, on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed) == (1, 15)
