"""Requests without an answer that may have been billed: counted, and not repeated at will."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from commands.budget import BudgetReached
from commands.errors import ProviderError
from commands.exposure import Exposure
from commands.judge import JudgeTask, judge_open
from commands.ports import Answer, NoReply
from commands.progress import unheard
from commands.recorder import Recorder
from commands.scripted import ScriptedJudge
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.judge_query import JudgeQuery
from projections.progress import AskingRules
from tests.batches import USED
from tests.builders import STREAM, key, opened, prompt
from tests.commands.builders import JUDGE, answered, failed, reply
from tests.commands.flat_rate import FlatRate

BANK = [prompt(f"p{n}") for n in range(8)]  # 16 queries
CUT = "the connection was cut; it may have been billed"
BUSY = "overloaded_error"


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants and eight prompts, all answered."""
    return answered(recorder, opened(prompts=BANK))


def ask(
    recorder: Recorder,
    say: Callable[[JudgeQuery], Answer],
    *,
    max_usd: float | None = None,
    retries: int = 0,
) -> ScriptedJudge:
    """Ask about everything, a dollar each, until that is done or fails."""
    port = ScriptedJudge(say)
    prompts, rules = [each.prompt_id for each in BANK], AskingRules(retries)
    task = JudgeTask(JUDGE, prompts, rules, pricing=FlatRate(1.0), max_usd=max_usd)
    with pytest.raises((BudgetReached, ProviderError)):
        judge_open(recorder, task, lambda: port, on_progress=unheard)
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


def test_other_tournaments_and_other_judges_have_budgets_of_their_own(
    ledger: Ledger, recorder: Recorder
) -> None:
    """A merged ledger tells of failures that somebody else paid for."""
    lost = failed(key("query"), reason="errored", detail=CUT)
    somebody = failed(key("other"), reason="errored", detail=CUT, judge="somebody")
    ledger.append(StreamId("colleague"), [lost], expected_version=None)
    ledger.append(STREAM, [somebody], expected_version=None)

    assert Exposure(recorder, JUDGE, FlatRate(1.0)).usd() == 0.0


def test_a_question_of_an_older_rubric_counts_as_the_dearest_of_today(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Its text is asked no more, and the money may be gone all the same."""
    exposure = Exposure(recorder, JUDGE, FlatRate(1.0))
    lost = failed(key("old"), reason="errored", detail=CUT)
    ledger.append(STREAM, [lost], expected_version=None)

    assert [exposure.usd(), exposure.usd()] == [1.0, 1.0]


def test_a_row_of_failures_that_may_have_been_billed_ends_the_run(recorder: Recorder) -> None:
    """Without a cap it would pay for every query, as often as retries allow, for nothing."""
    port = ScriptedJudge(cut)
    task = JudgeTask(JUDGE, [each.prompt_id for each in BANK], AskingRules(retries=5))

    with pytest.raises(ProviderError, match=r"^10 requests in a row .* may have been billed"):
        judge_open(recorder, task, lambda: port, on_progress=unheard)

    assert len(port.asked) == 10


def test_failures_with_an_answer_in_between_are_no_row(recorder: Recorder) -> None:
    """A connection that breaks now and then is worth going on with."""
    said = iter([*[True] * 9, False, *[True] * 6])
    port = ScriptedJudge(lambda query: cut(query) if next(said) else reply(query.query_key))
    task = JudgeTask(JUDGE, [each.prompt_id for each in BANK], AskingRules(retries=0))

    done = judge_open(recorder, task, lambda: port, on_progress=unheard)

    assert (done.n_verdicts, done.n_failed) == (1, 15)
