"""Judging what is open: each reply kept, asked again where it said nothing, then reconciled."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Event

import pytest

from commands.decisions.commands import SubmitQuery
from commands.decisions.recorder import Recorder
from commands.errors import NothingReadable
from commands.judging.judge import JudgeTask, JudgingSummary, begun_again, judge_open
from commands.ports import LocalJudge, NoReply, Reply, no_progress
from commands.spending.budget import BudgetReached
from ledger.errors import TourneyError
from ledger.events.judging import PairReconciled
from ledger.events.money import Usage
from ledger.identity import Digest, PromptId, StreamId
from ledger.store import Ledger
from projections.tournament.remaining import AskingRules
from projections.tournament.settlement import account_of, settle
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.batches import USED
from tests.support.builders.commands import (
    JUDGE,
    P1,
    P2,
    PowerCut,
    prefer_tuned,
    preferring_tuned,
    record_answers,
    reply,
    types_of,
)
from tests.support.builders.events import STREAM, judge, opened, prompt, verdict
from tests.support.builders.games import generated
from tests.support.builders.money import FlatRate, MeanwhileMerged
from tests.support.scripted import ScriptedJudge


def range_of(n: int) -> list[str]:
    """Return the names of so many prompts."""
    return [f"p{number}" for number in range(n)]


NAMES = range_of(20)


def judged(
    recorder: Recorder, port: LocalJudge, *, retries: int = 1, limit: int | None = None
) -> JudgingSummary:
    """Judge what is open on both prompts."""
    task = JudgeTask(JUDGE, [P1, P2], AskingRules(retries), limit=limit)
    return judge_open(recorder, task, lambda *_: port, on_progress=no_progress)


def statuses(recorder: Recorder) -> list[str]:
    """Return what became of each pairing."""
    return [settlement.status for settlement in settle(recorder.state, [P1, P2], JUDGE)]


def never_made() -> LocalJudge:
    """Fail: nothing may be asked."""
    raise AssertionError


def counting(ledger: Ledger) -> Callable[[str], int]:
    """Return a function that counts a ledger's events of a type."""
    return lambda name: types_of(ledger).count(name)


class FromTheEnd:
    """A judge whose replies come in the opposite order, as from a batch."""

    n_together = 100

    def answers(
        self,
        queries: Sequence[JudgeQuery],
        stops: Event,  # noqa: ARG002  # all are answered
    ) -> Iterator[tuple[Reply, ...]]:
        """Yield replies together, the last query's first."""
        yield tuple(reply(each.query_key, prefer_tuned(each)) for each in reversed(queries))


def test_both_orders_of_every_pair_are_asked_and_reconciled(recorder: Recorder) -> None:
    """One order alone would be decided by the slot as often as by the response."""
    port = preferring_tuned()

    done = judged(recorder, port)

    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    assert [query.shown_a for query in port.asked[:2] if isinstance(query, PairQuery)] == [
        "base on Question p1?",
        "tuned on Question p1?",
    ]
    assert statuses(recorder) == ["b", "b"]


def test_a_query_holds_all_that_a_judge_needs(recorder: Recorder) -> None:
    """The port gets text only; nothing else may decide a verdict."""
    port = preferring_tuned()

    judged(recorder, port, limit=1)

    (query,) = port.asked
    assert query.gold_answer == "aspirin"
    assert "Judge factuality." in query.system
    assert "Question p1?" in query.user


def test_judging_again_asks_for_nothing_more(ledger: Ledger, recorder: Recorder) -> None:
    """Verdicts were paid for; the second run finds them on the ledger."""
    judged(recorder, preferring_tuned())
    position, port = ledger.head.position, preferring_tuned()

    done = judged(recorder, port)

    assert done == JudgingSummary(n_open=0, n_verdicts=0, n_failed=0, n_reconciled=0)
    assert port.asked == []
    assert ledger.head.position == position


def test_what_a_process_that_died_had_sent_is_asked_again_by_the_next(recorder: Recorder) -> None:
    """It counts as perhaps billed; within a command that would not be sent a second time."""
    task = JudgeTask(JUDGE, [P1, P2], AskingRules(1))
    queries = task.open_in(recorder.state)
    recorder.record(*(SubmitQuery(JUDGE.judge_id, each, 1.0) for each in queries))

    again = begun_again(recorder, task)
    port = preferring_tuned()
    done = [
        judge_open(recorder, each, lambda *_: port, on_progress=no_progress)
        for each in (task, again)
    ]

    assert [each.n_verdicts for each in done] == [0, len(queries)]
    assert (len(recorder.state.under_way), recorder.state.lost_usd) == (0, len(queries))


def test_a_run_that_was_cut_off_asks_for_the_rest_only(ledger: Ledger, recorder: Recorder) -> None:
    """A reply is on the disk before the next one is waited for."""

    def two_then_dark(query: JudgeQuery) -> str:
        if counting(ledger)("VerdictReceived") == 2:
            raise PowerCut
        return prefer_tuned(query)

    port = preferring_tuned()
    with pytest.raises(PowerCut):
        judged(recorder, ScriptedJudge(two_then_dark))

    done = judged(Recorder(ledger, STREAM), port)

    assert done == JudgingSummary(n_open=2, n_verdicts=2, n_failed=0, n_reconciled=2)
    assert len(port.asked) == 2
    assert counting(ledger)("JudgeQuerySubmitted") == 4


def test_ctrl_c_records_what_is_under_way_and_asks_nothing_more(
    ledger: Ledger, recorder: Recorder, ctrl_c: Callable[[], None]
) -> None:
    """The answer is paid for, and a pair that it completes is reconciled."""

    def press_first(query: JudgeQuery) -> str:
        if not counting(ledger)("VerdictReceived"):
            ctrl_c()
        return prefer_tuned(query)

    port = ScriptedJudge(press_first, at_a_time=2)

    with pytest.raises(KeyboardInterrupt):
        judged(recorder, port)

    assert len(port.asked) == counting(ledger)("VerdictReceived") == 2
    assert counting(ledger)("JudgeQuerySubmitted") == 2
    assert counting(ledger)("PairReconciled") == 1


def test_an_unreadable_reply_is_asked_for_again(ledger: Ledger, recorder: Recorder) -> None:
    """A judge that forgot its last line mostly remembers it the second time."""
    seen = set()

    def forgetful(query: JudgeQuery) -> str:
        is_first = query.query_key not in seen
        seen.add(query.query_key)
        return "Both are fine." if is_first else prefer_tuned(query)

    done = judged(recorder, ScriptedJudge(forgetful))

    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    assert counting(ledger)("JudgeQueryFailed") == 4
    assert counting(ledger)("JudgeQuerySubmitted") == 8


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_judge_that_never_says_a_verdict_is_given_up(
    ledger: Ledger, recorder: Recorder, retries: int
) -> None:
    """What is asked in vain is counted as failed, with its reason, and costs nothing more."""
    port = ScriptedJudge(lambda _: "Both are fine.")

    done = judged(recorder, port, retries=retries)
    again = judged(recorder, port, retries=retries)

    assert done == JudgingSummary(n_open=4, n_verdicts=0, n_failed=4, n_reconciled=0)
    assert again.n_open == 0
    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 4 * (retries + 1)
    assert statuses(recorder) == ["unreadable", "unreadable"]


def test_a_silent_judge_ends_the_run(ledger: Ledger, recorder: Recorder) -> None:
    """No reply is no failure: the queries stay open, submitted once, for another day."""
    done = judged(recorder, ScriptedJudge(lambda _: None))

    assert done == JudgingSummary(n_open=4, n_verdicts=0, n_failed=4, n_reconciled=0)
    assert counting(ledger)("JudgeQuerySubmitted") == 4
    assert statuses(recorder) == ["pending", "pending"]


def test_replies_may_come_in_any_order(recorder: Recorder) -> None:
    """Batches come back shuffled; replies are told apart by their key alone."""
    done = judged(recorder, FromTheEnd())

    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    assert statuses(recorder) == ["b", "b"]


def test_a_judge_that_goes_by_the_slot_decides_nothing(recorder: Recorder) -> None:
    """It contradicts itself when the slots are swapped."""
    judged(recorder, ScriptedJudge(lambda _: "VERDICT: A"))

    account = account_of(settle(recorder.state, [P1, P2], JUDGE))
    assert (account.decided, account.inconsistent) == (0, 2)


def test_a_reply_under_an_unknown_key_stops_the_run(recorder: Recorder) -> None:
    """A backend that mixes up its keys would give verdicts to the wrong pairs."""
    port = ScriptedJudge(lambda query: reply(Digest(query.query_key[::-1])))

    with pytest.raises(TourneyError, match="never submitted"):
        judged(recorder, port)


def test_a_limit_asks_the_first_queries_and_their_repeats(recorder: Recorder) -> None:
    """A failure within the portion is asked again; the portion does not grow by it."""
    port = ScriptedJudge(lambda _: "Both are fine.")

    done = judged(recorder, port, limit=3)

    assert done == JudgingSummary(n_open=4, n_verdicts=0, n_failed=3, n_reconciled=0)
    assert len({query.query_key for query in port.asked}) == 3


def identical(recorder: Recorder) -> Recorder:
    """Record that both entrants say the same to one prompt, as `aspirin`."""
    return generated(recorder, opened(), lambda _: "aspirin")


def test_identical_responses_tie_without_being_asked_about(ledger: Ledger) -> None:
    """The judge is not even made: a tie that is sure costs nothing."""
    recorder = identical(Recorder(ledger, STREAM))
    task = JudgeTask(JUDGE, [P1], AskingRules(retries=1, skip_identical=True))

    done = judge_open(recorder, task, lambda *_: never_made(), on_progress=no_progress)

    assert done == JudgingSummary(n_open=0, n_verdicts=0, n_failed=0, n_reconciled=1)
    (outcome,) = (each.event for each in ledger.read(types=["PairReconciled"]))
    assert isinstance(outcome, PairReconciled)
    assert (outcome.outcome, outcome.basis) == ("tie", "identical")


def test_identical_responses_are_asked_about_once_if_so_wished(ledger: Ledger) -> None:
    """Whoever tests a judge for consistency wants its word; both orders are one question."""
    recorder = identical(Recorder(ledger, STREAM))
    port = ScriptedJudge(lambda _: "VERDICT: TIE")
    task = JudgeTask(JUDGE, [P1], AskingRules(retries=1))

    done = judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert done == JudgingSummary(n_open=1, n_verdicts=1, n_failed=0, n_reconciled=1)
    assert len(port.asked) == 1


@pytest.mark.parametrize("stop_reason", ["refusal", "max_tokens"])
def test_what_would_fail_again_is_not_asked_again(recorder: Recorder, stop_reason: str) -> None:
    """Each asking is paid for, and this one would end the same."""
    port = ScriptedJudge(lambda query: reply(query.query_key, "I cannot.", stop_reason))

    done = judged(recorder, port, retries=5)

    assert done == JudgingSummary(n_open=4, n_verdicts=0, n_failed=4, n_reconciled=0)
    assert len(port.asked) == 4


def test_an_empty_reply_is_asked_for_again(recorder: Recorder) -> None:
    """A judge that said nothing at all, uncounted, has used up one retry and no more."""
    port = ScriptedJudge(lambda _: "")

    judged(recorder, port, retries=1)

    assert len(port.asked) == 4 * 2
    assert statuses(recorder) == ["empty", "empty"]


def test_a_provider_in_trouble_leaves_the_queries_open(recorder: Recorder) -> None:
    """Nothing was paid: the next run asks them all, however often this one tried."""
    port = ScriptedJudge(lambda query: NoReply(query.query_key, "errored", "overloaded_error"))

    judged(recorder, port, retries=1)
    done = judged(recorder, preferring_tuned(), retries=0)

    assert len(port.asked) == 4 * 2
    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)


def test_more_tokens_than_there_can_be_are_not_believed(ledger: Ledger, recorder: Recorder) -> None:
    """The reply counts, and its cost at the worst case; a line says so once."""
    told: list[str] = []
    absurd = Usage(n_input=10**15, n_output=1)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=absurd))
    task = JudgeTask(JUDGE, [P1, P2], AskingRules(0), lambda _: FlatRate(1.0))

    judge_open(recorder, task, lambda *_: port, on_progress=no_progress, tell=told.append)

    assert counting(ledger)("VerdictReceived") == 4
    assert (recorder.state.spent_usd, recorder.state.lost_usd) == (0.0, 4.0)
    (line,) = told
    assert line.startswith(f"judge 'reference' reports {10**15} tokens in and 1 out, but ")


def test_a_cap_stops_before_it_is_exceeded(ledger: Ledger, recorder: Recorder) -> None:
    """Each reply costs a dollar here: three fit into a cap of three and a half."""
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=USED))
    task = JudgeTask(JUDGE, [P1, P2], AskingRules(0), lambda _: FlatRate(1.0), max_usd=3.5)

    for _ in range(2):
        with pytest.raises(BudgetReached, match=r"^the cap is \$3\.50: \$3\.0000 is spent"):
            judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert len(port.asked) == counting(ledger)("VerdictReceived") == 3
    assert recorder.state.spent_usd == pytest.approx(3.0)


@pytest.mark.parametrize("stream", [StreamId("colleague"), STREAM])
def test_what_a_merge_answers_while_a_chunk_is_asked_is_not_asked(
    ledger: Ledger, recorder: Recorder, stream: StreamId
) -> None:
    """Whoever merges a colleague's ledger meanwhile has paid already; the cap makes chunks here."""
    questions = [each.asked.query_key for each in capped().open_in(recorder.state)]

    def merging(query: JudgeQuery) -> str:
        if query.query_key == questions[0]:
            ledger.append(stream, [verdict(each) for each in questions[1:]])
        return "VERDICT: A"

    port = ScriptedJudge(merging)
    done = judge_open(recorder, capped(), lambda *_: port, on_progress=no_progress)

    assert [query.query_key for query in port.asked] == questions[:2]
    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)


def test_what_a_merge_answers_before_a_chunk_is_submitted_is_not_asked(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Another host of the tournament paid for it; the run goes on with the rest."""
    questions = [each.asked.query_key for each in capped().open_in(recorder.state)]
    price = MeanwhileMerged(1.0, lambda: ledger.append(STREAM, [verdict(questions[0])]))
    few = Usage(n_input=1, n_output=0)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=few))

    task = replace(capped(), pricing_of=lambda _: price)
    done = judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert [query.query_key for query in port.asked] == questions[1:]
    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)


def capped() -> JudgeTask:
    """Return a task of which the cap allows two queries at first."""
    rules = AskingRules(retries=1)
    return JudgeTask(JUDGE, [P1, P2], rules, lambda _: FlatRate(1.0), max_usd=2.5)


def test_progress_is_told_after_each_reply(recorder: Recorder) -> None:
    """An online judge takes seconds for each."""
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    task = JudgeTask(JUDGE, [P1], AskingRules(retries=1))
    judge_open(recorder, task, lambda *_: preferring_tuned(), on_progress=tell)

    assert told == [("verdicts", 1, 2), ("verdicts", 2, 2)]


def test_a_query_that_is_asked_again_counts_again(recorder: Recorder) -> None:
    """`3 of 2` would be wrong, and `2 of 2` would hide how much was asked."""
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    def answer(query: JudgeQuery) -> str:
        assert isinstance(query, PairQuery)
        return "Both are fine." if query.order == "swapped" else "VERDICT: A"

    task = JudgeTask(JUDGE, [P1], AskingRules(retries=1))
    judge_open(recorder, task, lambda *_: ScriptedJudge(answer), on_progress=tell)

    assert told == [("verdicts", 1, 2), ("verdicts", 2, 3), ("verdicts", 3, 3)]


def of_twenty(ledger: Ledger) -> Recorder:
    """Record both answers to twenty prompts: forty queries."""
    return record_answers(Recorder(ledger, STREAM), opened(prompts=[*map(prompt, NAMES)]))


def judging_of_twenty(recorder: Recorder, port: LocalJudge, *, retries: int = 1) -> JudgingSummary:
    """Judge all forty."""
    task = JudgeTask(JUDGE, [*map(PromptId, NAMES)], AskingRules(retries))
    return judge_open(recorder, task, lambda *_: port, on_progress=no_progress)


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("text", ["I lean towards A.", ""])
def test_a_judge_that_says_nothing_readable_is_stopped(
    ledger: Ledger, retries: int, text: str
) -> None:
    """Each reply is paid for: sixteen queries in a row tell enough, however often each is asked."""
    port = ScriptedJudge(lambda _: text, at_a_time=1)

    with pytest.raises(NothingReadable, match="16 replies in a row of judge 'reference' held no"):
        judging_of_twenty(of_twenty(ledger), port, retries=retries)

    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 15 * (retries + 1) + 1
    assert len({query.query_key for query in port.asked}) == 16


def test_a_judge_that_is_cut_off_each_time_is_stopped(ledger: Ledger) -> None:
    """Such replies are as long as may be, the dearest that there are."""
    port = ScriptedJudge(lambda query: reply(query.query_key, "Let us", "max_tokens"), at_a_time=1)

    with pytest.raises(NothingReadable, match="it was cut off: raise max_tokens of the judge; run"):
        judging_of_twenty(of_twenty(ledger), port)

    assert len(port.asked) == 16


def test_what_is_under_way_at_the_stop_is_recorded(ledger: Ledger) -> None:
    """It is paid for, as after Ctrl-C."""
    port = ScriptedJudge(lambda _: "Hm.", at_a_time=12)

    with pytest.raises(NothingReadable):
        judging_of_twenty(of_twenty(ledger), port)

    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 36


def test_the_same_command_goes_on_with_other_queries(ledger: Ledger) -> None:
    """Whoever wants to go on can; the second time it is stopped as soon, and then is put right."""
    recorder, port = of_twenty(ledger), ScriptedJudge(lambda _: "Hm.", at_a_time=16)
    for _ in range(2):
        with pytest.raises(NothingReadable):
            judging_of_twenty(recorder, port)
    asked = [query.query_key for query in port.asked]

    done = judging_of_twenty(recorder, preferring_tuned())

    assert len({*asked}) == len(asked) == 32
    assert (done.n_verdicts, done.n_failed, done.n_reconciled) == (40, 0, 20)


def test_a_judge_that_is_mostly_unreadable_is_stopped(ledger: Ledger) -> None:
    """Over half of the last fifty: two of three here, never sixteen in a row."""
    recorder = record_answers(
        Recorder(ledger, STREAM), opened(prompts=[*map(prompt, range_of(60))])
    )
    port = ScriptedJudge(lambda _: "Hm." if len(port.asked) % 3 else "VERDICT: A", at_a_time=1)
    task = JudgeTask(JUDGE, [*map(PromptId, range_of(60))], AskingRules(0))

    with pytest.raises(NothingReadable, match="34 of the last 50 replies of judge 'reference'"):
        judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert len(port.asked) == 50


def test_a_judge_that_is_often_unreadable_goes_on(ledger: Ledger) -> None:
    """Every third query here, each time; repeats stand among the others, never in a row."""
    recorder = record_answers(
        Recorder(ledger, STREAM), opened(prompts=[*map(prompt, range_of(60))])
    )
    task = JudgeTask(JUDGE, [*map(PromptId, range_of(60))], AskingRules(1))
    hard = {each.asked.query_key for each in task.open_in(recorder.state)[::4]}
    port = ScriptedJudge(lambda query: "Hm." if query.query_key in hard else "VERDICT: A")

    done = judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed) == (90, 30)
    assert len(port.asked) == 150


@pytest.mark.parametrize("at_a_time", [1, 50])
def test_a_few_hard_queries_and_their_repeats_stop_no_judge(ledger: Ledger, at_a_time: int) -> None:
    """Eight in a row, each asked three times, are one hard prompt or two, and no useless judge."""
    recorder = record_answers(
        Recorder(ledger, STREAM), opened(prompts=[*map(prompt, range_of(60))])
    )
    task = JudgeTask(JUDGE, [*map(PromptId, range_of(60))], AskingRules(2))
    hard = {each.asked.query_key for each in task.open_in(recorder.state)[40:48]}
    port = ScriptedJudge(
        lambda query: "Hm." if query.query_key in hard else "VERDICT: A", at_a_time=at_a_time
    )

    done = judge_open(recorder, task, lambda *_: port, on_progress=no_progress)

    assert (done.n_verdicts, done.n_failed, len(port.asked)) == (112, 8, 136)


def test_a_judge_that_is_read_at_the_second_try_goes_on(ledger: Ledger) -> None:
    """A query counts by its latest reply."""
    recorder, seen = of_twenty(ledger), set[str]()

    def answer(query: JudgeQuery) -> str:
        is_new = query.query_key not in seen
        seen.add(query.query_key)
        return "Hm." if is_new else "VERDICT: A"

    done = judging_of_twenty(recorder, ScriptedJudge(answer, at_a_time=1))

    assert (done.n_verdicts, done.n_failed) == (40, 0)


def test_refusals_and_silence_are_no_unreadable_replies(ledger: Ledger) -> None:
    """A refusal is about what was asked, and an error is not paid for."""
    recorder = of_twenty(ledger)
    refuses = ScriptedJudge(lambda query: reply(query.query_key, "I cannot.", "refusal"))

    done = judging_of_twenty(recorder, refuses)

    assert (done.n_failed, len(refuses.asked)) == (40, 40)


def test_the_stop_shows_a_reply_and_the_parser_that_reads_it(ledger: Ledger) -> None:
    """Reading again is free; a reply is shown on one line, and escaped as it is printed."""
    port = ScriptedJudge(lambda _: '{"verdict": "A",\n"reasoning": "x"}', at_a_time=1)

    with pytest.raises(NothingReadable) as stop:
        judging_of_twenty(of_twenty(ledger), port)

    assert str(stop.value) == (
        "16 replies in a row of judge 'reference' held no readable verdict, so nothing more is"
        ' asked; one of them reads \'{"verdict": "A", "reasoning": "x"}\'; read 16 of them:'
        " `tourney project elo --parser json-verdict`; run the same command again to go on"
    )


def test_the_stop_names_the_judge_where_the_panel_has_several(ledger: Ledger) -> None:
    """The command would read another judge's replies."""
    bank = [*map(prompt, NAMES)]
    recorder = record_answers(
        Recorder(ledger, STREAM), opened(prompts=bank, judges=[judge("ann"), JUDGE])
    )
    port = ScriptedJudge(lambda _: '{"verdict": "A"}', at_a_time=1)

    with pytest.raises(NothingReadable, match="elo --judge reference --parser json-verdict`"):
        judging_of_twenty(recorder, port)
