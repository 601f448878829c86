"""Judging what is open: each reply kept, asked again where it said nothing, then reconciled."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import NothingReadable
from commands.judging.judge import JudgeTask, JudgingSummary, judge_open
from commands.ports import Answer, LocalJudge, NoReply, no_progress
from commands.spending.budget import BudgetReached
from ledger.errors import TourneyError
from ledger.events.judging import JudgeQuerySubmitted, PairReconciled
from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, StreamId
from ledger.store import Ledger
from projections.tournament.remaining import repeats_of
from projections.tournament.settlement import settle
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.batching import MERGED
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

ALL_DONE = JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
CAPPED = JudgeTask(JUDGE, [P1, P2], 1, FlatRate(1.0), max_usd=2.5)
"""A task of which the cap allows two queries at first."""


def judged(
    recorder: Recorder, port: LocalJudge, *, retries: int = 1, limit: int | None = None
) -> JudgingSummary:
    """Judge what is open on all prompts."""
    prompts = [each.prompt_id for each in recorder.state.bank]
    return done(recorder, JudgeTask(JUDGE, prompts, retries=retries, limit=limit), port)


def done(recorder: Recorder, task: JudgeTask, port: LocalJudge) -> JudgingSummary:
    """Carry out a task."""
    return judge_open(recorder, task, lambda *_: port, on_progress=no_progress)


def statuses(recorder: Recorder) -> list[str]:
    """Return what became of each pairing."""
    return [settlement.status for settlement in settle(recorder.state, [P1, P2], JUDGE)]


def counting(ledger: Ledger) -> Callable[[str], int]:
    """Return a function that counts a ledger's events of a type."""
    return lambda name: types_of(ledger).count(name)


def forgetful(first: str) -> Callable[[JudgeQuery], str]:
    """Return what a judge says that gives a verdict only when it is asked the second time."""
    seen = set[Digest]()

    def answer(query: JudgeQuery) -> str:
        is_first = query.query_key not in seen
        seen.add(query.query_key)
        return first if is_first else prefer_tuned(query)

    return answer


def test_both_orders_of_every_pair_are_asked_and_reconciled_once(
    ledger: Ledger, recorder: Recorder
) -> None:
    """One order alone would be decided by the slot; verdicts were paid for, and are on record."""
    port = preferring_tuned()

    first = judged(recorder, port)
    position = ledger.head.position
    second = judged(recorder, port)

    assert (first, second) == (ALL_DONE, JudgingSummary(0, 0, 0, 0))
    assert [query.shown_a for query in port.asked if isinstance(query, PairQuery)] == [
        f"{name} on Question {prompt_id}?"
        for prompt_id in ("p1", "p2")
        for name in ("base", "tuned")
    ]
    assert statuses(recorder) == ["b", "b"]
    assert ledger.head.position == position


def repeated(recorder: Recorder, n: int) -> JudgeTask:
    """Return the task of asking so many queries again."""
    sample = [*islice(repeats_of(recorder.state, [P1, P2], JUDGE), n)]
    return JudgeTask(JUDGE, (), retries=1, repeats=sample)


def test_repeats_are_asked_once_and_change_no_outcome(ledger: Ledger, recorder: Recorder) -> None:
    """The request is the same; a larger sample asks the difference."""
    first, second = preferring_tuned(), ScriptedJudge(lambda _: "VERDICT: TIE")
    judged(recorder, first)
    before = statuses(recorder)

    summaries = [done(recorder, repeated(recorder, n), second) for n in (3, 3, 4, 9)]

    assert [(each.n_open, each.n_verdicts) for each in summaries] == [
        (3, 3),
        (0, 0),
        (1, 1),
        (0, 0),
    ]
    assert {(each.system, each.user) for each in second.asked} == {
        (each.system, each.user) for each in first.asked
    }
    assert statuses(recorder) == before == ["b", "b"]
    assert counting(ledger)("PairReconciled") == 2
    named = [each.event for each in ledger.read(types={"JudgeQuerySubmitted"})]
    repeats = [each for each in named if isinstance(each, JudgeQuerySubmitted) and each.repeats]
    assert len(repeats) == 4
    assert {each.repeats for each in repeats} == {each.query_key for each in first.asked}


def test_repeats_that_were_cut_off_are_paid_once(ledger: Ledger, recorder: Recorder) -> None:
    """As queries are: what has an answer is not open."""
    judged(recorder, preferring_tuned())

    def one_then_dark(query: JudgeQuery) -> str:
        if counting(ledger)("VerdictReceived") == 5:
            raise PowerCut
        return prefer_tuned(query)

    port = preferring_tuned()
    with pytest.raises(PowerCut):
        done(recorder, repeated(recorder, 4), ScriptedJudge(one_then_dark))
    next_one = Recorder(ledger, STREAM)
    rest = done(next_one, repeated(next_one, 4), port)

    assert (rest.n_open, rest.n_verdicts, len(port.asked)) == (3, 3, 3)
    assert counting(ledger)("JudgeQuerySubmitted") == 8


def test_a_cap_holds_for_repeats(recorder: Recorder) -> None:
    """They cost what queries cost."""
    judged(recorder, preferring_tuned())
    task = replace(repeated(recorder, 4), pricing=FlatRate(1.0), max_usd=0.5)

    with pytest.raises(BudgetReached):
        done(recorder, task, preferring_tuned())


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

    types = ("VerdictReceived", "JudgeQuerySubmitted", "PairReconciled")
    assert (len(port.asked), *map(counting(ledger), types)) == (2, 2, 2, 1)


def test_an_unreadable_reply_is_asked_for_again(ledger: Ledger, recorder: Recorder) -> None:
    """A judge that forgot its last line mostly remembers it the second time."""
    assert judged(recorder, ScriptedJudge(forgetful("Both are fine."))) == ALL_DONE

    assert counting(ledger)("JudgeQueryFailed") == 4
    assert counting(ledger)("JudgeQuerySubmitted") == 8


@pytest.mark.parametrize(
    ("text", "stop_reason", "retries", "n_asked", "status"),
    [
        *(("Both are fine.", "end_turn", n, n + 1, "unreadable") for n in (0, 1, 3)),
        ("", "end_turn", 1, 2, "empty"),
        ("I cannot.", "refusal", 5, 1, "refused"),
        ("I cannot", "max_tokens", 5, 1, "truncated"),
    ],
)
def test_what_is_asked_in_vain_is_given_up_with_its_reason(
    ledger: Ledger,
    recorder: Recorder,
    text: str,
    stop_reason: str,
    retries: int,
    *,
    n_asked: int,
    status: str,
) -> None:
    """Each asking is paid for; what would end the same is not asked again at all."""
    port = ScriptedJudge(lambda query: reply(query.query_key, text, stop_reason))

    first = judged(recorder, port, retries=retries)
    second = judged(recorder, port, retries=retries)

    assert first == JudgingSummary(n_open=4, n_verdicts=0, n_failed=4, n_reconciled=0)
    assert second.n_open == 0
    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 4 * n_asked
    assert statuses(recorder) == [status, status]


def test_a_silent_judge_ends_the_run(ledger: Ledger, recorder: Recorder) -> None:
    """No reply is no failure: the queries stay open, submitted once, for another day."""
    summary = judged(recorder, ScriptedJudge(lambda _: None))

    assert summary == JudgingSummary(n_open=4, n_verdicts=0, n_failed=4, n_reconciled=0)
    assert counting(ledger)("JudgeQuerySubmitted") == 4
    assert statuses(recorder) == ["pending", "pending"]


def test_a_provider_in_trouble_leaves_the_queries_open(recorder: Recorder) -> None:
    """Nothing was paid: the next run asks them all, however often this one tried."""
    port = ScriptedJudge(lambda query: NoReply(query.query_key, "errored", "overloaded_error"))

    judged(recorder, port, retries=1)

    assert len(port.asked) == 4 * 2
    assert judged(recorder, preferring_tuned(), retries=0) == ALL_DONE


def test_a_reply_under_an_unknown_key_stops_the_run(recorder: Recorder) -> None:
    """A backend that mixes up its keys would give verdicts to the wrong pairs."""
    port = ScriptedJudge(lambda query: reply(Digest(query.query_key[::-1])))

    with pytest.raises(TourneyError, match="never submitted"):
        judged(recorder, port)


def test_a_limit_asks_the_first_queries_and_their_repeats(recorder: Recorder) -> None:
    """A failure within the portion is asked again; the portion does not grow by it."""
    port = ScriptedJudge(lambda _: "Both are fine.")

    summary = judged(recorder, port, limit=3)

    assert summary == JudgingSummary(n_open=4, n_verdicts=0, n_failed=3, n_reconciled=0)
    assert len({query.query_key for query in port.asked}) == 3


def test_identical_responses_tie_unasked(ledger: Ledger) -> None:
    """A tie that is sure costs nothing."""
    recorder = generated(Recorder(ledger, STREAM), opened(), lambda _: "aspirin")
    port = ScriptedJudge(lambda _: "VERDICT: TIE")

    summary = done(recorder, JudgeTask(JUDGE, [P1], retries=1), port)

    assert summary == JudgingSummary(n_open=0, n_verdicts=0, n_failed=0, n_reconciled=1)
    assert port.asked == []
    (outcome,) = (each.event for each in ledger.read(types=["PairReconciled"]))
    assert isinstance(outcome, PairReconciled)
    assert (outcome.outcome, outcome.basis) == ("tie", "identical")


def test_more_tokens_than_there_can_be_are_not_believed(ledger: Ledger, recorder: Recorder) -> None:
    """The reply counts, and its cost at the worst case; a line says so once."""
    told: list[str] = []
    absurd = Usage(n_input=10**15, n_output=1)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=absurd))
    task = JudgeTask(JUDGE, [P1, P2], 0, FlatRate(1.0))

    judge_open(recorder, task, lambda *_: port, on_progress=no_progress, tell=told.append)

    assert counting(ledger)("VerdictReceived") == 4
    assert (recorder.state.spent_usd, recorder.state.lost_usd) == (0.0, 4.0)
    (line,) = told
    assert line.startswith(f"judge 'reference' reports {10**15} tokens in and 1 out, but ")


@MERGED
def test_what_a_merge_answers_while_a_chunk_is_asked_is_not_asked(
    ledger: Ledger, recorder: Recorder, stream: StreamId
) -> None:
    """Whoever merges a colleague's ledger meanwhile has paid already; the cap makes chunks here."""
    questions = [each.asked.query_key for each in CAPPED.open_in(recorder.state)]

    def merging(query: JudgeQuery) -> str:
        if query.query_key == questions[0]:
            ledger.append(stream, [verdict(each) for each in questions[1:]])
        return "VERDICT: A"

    port = ScriptedJudge(merging)

    assert done(recorder, CAPPED, port) == ALL_DONE
    assert [query.query_key for query in port.asked] == questions[:2]


@pytest.mark.parametrize(("elsewhere_usd", "n_asked"), [(0.0, 2), (1.0, 1)])
def test_a_cap_of_all_counts_what_was_spent_on_entrants(
    recorder: Recorder, elsewhere_usd: float, n_asked: int
) -> None:
    """Else each half of a command would spend the whole of it."""
    usage = Usage(n_input=1_000, n_output=99_000)  # for a dollar
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=usage))

    with pytest.raises(BudgetReached):
        done(recorder, replace(CAPPED, spent_elsewhere_usd=elsewhere_usd), port)

    assert len(port.asked) == n_asked


def test_what_a_merge_answers_before_a_chunk_is_submitted_is_not_asked(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Another host of the tournament paid for it; the run goes on with the rest."""
    questions = [each.asked.query_key for each in CAPPED.open_in(recorder.state)]
    price = MeanwhileMerged(1.0, lambda: ledger.append(STREAM, [verdict(questions[0])]))
    few = Usage(n_input=1, n_output=0)
    port = ScriptedJudge(lambda query: replace(reply(query.query_key), usage=few))

    assert done(recorder, replace(CAPPED, pricing=price), port) == ALL_DONE
    assert [query.query_key for query in port.asked] == questions[1:]


@pytest.mark.parametrize(
    ("swapped", "counts"),
    [
        ("VERDICT: B", [(1, 2), (2, 2)]),
        ("Both are fine.", [(1, 2), (2, 3), (3, 3)]),
        (None, [(1, 2), (1, 2)]),
    ],
)
def test_progress_is_told_after_each_reply_and_counts_what_is_asked_again(
    recorder: Recorder, swapped: str | None, counts: list[tuple[int, int]]
) -> None:
    """`3 of 2` would be wrong, `2 of 2` would hide how much was asked; a failure is no progress."""
    told: list[tuple[str, int, int]] = []

    def answer(query: JudgeQuery) -> str | NoReply:
        assert isinstance(query, PairQuery)
        if query.order == "forward":
            return "VERDICT: A"
        return swapped or NoReply(query.query_key, "rejected", "too long")

    task = JudgeTask(JUDGE, [P1], retries=1)
    judge_open(
        recorder,
        task,
        lambda *_: ScriptedJudge(answer),
        on_progress=lambda *progress: told.append(progress),
    )

    assert told == [("verdicts", *each) for each in counts]


def of_many(ledger: Ledger, n_prompts: int = 20, *judges: JudgeSettings) -> Recorder:
    """Record both answers to many prompts: twice as many queries."""
    bank = [prompt(f"p{number}") for number in range(n_prompts)]
    return record_answers(Recorder(ledger, STREAM), opened(prompts=bank, judges=judges or [JUDGE]))


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("text", ["I lean towards A.", ""])
def test_a_judge_that_says_nothing_readable_is_stopped(
    ledger: Ledger, retries: int, text: str
) -> None:
    """Each reply is paid for: sixteen queries in a row tell enough, however often each is asked."""
    port = ScriptedJudge(lambda _: text, at_a_time=1)

    with pytest.raises(NothingReadable, match="16 replies in a row of judge 'reference' held no"):
        judged(of_many(ledger), port, retries=retries)

    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 15 * (retries + 1) + 1
    assert len({query.query_key for query in port.asked}) == 16


def test_a_judge_that_is_cut_off_each_time_is_stopped(ledger: Ledger) -> None:
    """Such replies are as long as may be, the dearest that there are."""
    port = ScriptedJudge(lambda query: reply(query.query_key, "Let us", "max_tokens"), at_a_time=1)

    with pytest.raises(NothingReadable, match="it was cut off: raise max_tokens of the judge; run"):
        judged(of_many(ledger), port)

    assert len(port.asked) == 16


def test_what_is_under_way_at_the_stop_is_recorded(ledger: Ledger) -> None:
    """It is paid for, as after Ctrl-C."""
    port = ScriptedJudge(lambda _: "Hm.", at_a_time=12)

    with pytest.raises(NothingReadable):
        judged(of_many(ledger), port)

    assert len(port.asked) == counting(ledger)("JudgeQueryFailed") == 36


def test_the_same_command_goes_on_with_other_queries(ledger: Ledger) -> None:
    """Whoever wants to go on can; the second time it is stopped as soon, and then is put right."""
    recorder, port = of_many(ledger), ScriptedJudge(lambda _: "Hm.", at_a_time=16)
    for _ in range(2):
        with pytest.raises(NothingReadable):
            judged(recorder, port)
    asked = [query.query_key for query in port.asked]

    summary = judged(recorder, preferring_tuned())

    assert len({*asked}) == len(asked) == 32
    assert summary[1:] == (40, 0, 20)


def test_a_judge_that_is_mostly_unreadable_is_stopped(ledger: Ledger) -> None:
    """Over half of the last fifty: two of three here, never sixteen in a row."""
    port = ScriptedJudge(lambda _: "Hm." if len(port.asked) % 3 else "VERDICT: A", at_a_time=1)

    with pytest.raises(NothingReadable, match="34 of the last 50 replies of judge 'reference'"):
        judged(of_many(ledger, 60), port, retries=0)

    assert len(port.asked) == 50


@pytest.mark.parametrize(
    ("which", "retries", "at_a_time", "n_failed"),
    [
        pytest.param(slice(None, None, 4), 1, 4, 30, id="every fourth query"),
        pytest.param(slice(40, 48), 2, 1, 8, id="eight in a row, one at a time"),
        pytest.param(slice(40, 48), 2, 50, 8, id="eight in a row, among fifty"),
    ],
)
def test_a_few_hard_queries_and_their_repeats_stop_no_judge(
    ledger: Ledger, which: slice, retries: int, at_a_time: int, n_failed: int
) -> None:
    """They are hard prompts, and no useless judge; a query counts once."""
    recorder = of_many(ledger, 60)
    prompts = [each.prompt_id for each in recorder.state.bank]
    queries = JudgeTask(JUDGE, prompts, retries=retries).open_in(recorder.state)
    hard = {each.asked.query_key for each in queries[which]}
    port = ScriptedJudge(
        lambda query: "Hm." if query.query_key in hard else "VERDICT: A", at_a_time=at_a_time
    )

    summary = judged(recorder, port, retries=retries)

    assert (summary.n_verdicts, summary.n_failed) == (120 - n_failed, n_failed)
    assert len(port.asked) == 120 + retries * n_failed


@pytest.mark.parametrize(
    ("answer", "n_failed"),
    [
        pytest.param(forgetful("Hm."), 0, id="read at the second try"),
        pytest.param(lambda query: reply(query.query_key, "No.", "refusal"), 40, id="refusals"),
    ],
)
def test_a_query_counts_by_its_latest_reply_and_a_refusal_not_at_all(
    ledger: Ledger, answer: Callable[[JudgeQuery], Answer | str], n_failed: int
) -> None:
    """A refusal is about what was asked, and the judge goes on."""
    summary = judged(of_many(ledger), ScriptedJudge(answer, at_a_time=1))

    assert (summary.n_verdicts, summary.n_failed) == (40 - n_failed, n_failed)


@pytest.mark.parametrize(
    ("others", "named"), [((), ""), ((judge("ann"),), " --judge reference")], ids=["alone", "panel"]
)
def test_the_stop_shows_a_reply_and_the_parser_that_reads_it(
    ledger: Ledger, others: tuple[JudgeSettings, ...], named: str
) -> None:
    """Reading again is free; of a panel the judge is named, or another's replies would be read."""
    port = ScriptedJudge(lambda _: '{"verdict": "A",\n"reasoning": "x"}', at_a_time=1)

    with pytest.raises(NothingReadable) as stop:
        judged(of_many(ledger, 20, *others, JUDGE), port)

    assert str(stop.value) == (
        "16 replies in a row of judge 'reference' held no readable verdict, so nothing more is"
        ' asked; one of them reads \'{"verdict": "A", "reasoning": "x"}\'; read 16 of them:'
        f" `tourney project elo{named} --parser json-verdict`; run the same command again to go on"
    )
