"""The laws of taking one ledger into another."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from commands.importing.merge import MergeCounts, merge_ledger
from ledger.auditing.audit import audit
from ledger.errors import CannotWrite, KeyConflict, UnreadableEvent
from ledger.events.evaluations import EvaluationCompleted, SampleObserved, SampleUnscorable
from ledger.events.imports import LedgerMerged
from ledger.events.judging import Outcome, PairReconciled, Verdict
from ledger.events.registry import Event
from ledger.events.values import type_name
from ledger.identity import Digest, Dimension, EntrantId, JudgeId, PromptId, StreamId, key_of
from ledger.store import Ledger
from tests.support.builders.evaluations import answer, completed, observed, plan, unscorable
from tests.support.builders.events import NOON, STREAM, key, opened, verdict, verdicts
from tests.support.strategies.events import BY_TYPE, histories

STREAMS: Final = st.sampled_from((STREAM, StreamId("other")))
QUESTIONS: Final = st.integers(0, 3).map(lambda number: key(str(number)))

FOLLOWING: Final = (PairReconciled, SampleObserved, SampleUnscorable, EvaluationCompleted)


class Told(NamedTuple):
    """A fact, and the stream it belongs to."""

    stream: StreamId
    event: Event


History = Sequence[Told]


def outcome(*, forward: str = "0", swapped: str = "1", said: Outcome = "tie") -> PairReconciled:
    """Return an outcome that follows from the verdicts on two questions."""
    return PairReconciled(
        dimension=Dimension("factuality"),
        prompt_id=PromptId("p1"),
        entrant_a=EntrantId("base"),
        entrant_b=EntrantId("tuned"),
        judge=JudgeId("reference"),
        policy="agreement@1",
        outcome=said,
        forward=key(forward),
        swapped=key(swapped),
    )


def told() -> SearchStrategy[History]:
    """Return what a ledger may be told; few questions, so that two often contradict each other."""
    questions = st.integers(0, 3).map(str)
    facts: SearchStrategy[Event] = st.one_of(
        st.builds(verdict, QUESTIONS, st.sampled_from(get_args(Verdict))),
        st.builds(
            outcome,
            forward=questions,
            swapped=questions,
            said=st.sampled_from(get_args(Outcome)),
        ),
        *(each for name, each in BY_TYPE.items() if name not in {"LedgerMerged", "EventRedacted"}),
    )
    return st.lists(st.builds(Told, STREAMS, facts), max_size=8) | st.lists(
        st.builds(Told, STREAMS, of_evaluations()), max_size=8
    )


def of_evaluations() -> SearchStrategy[Event]:
    """Return what is told of two runs of one evaluation, whose plans have two numbers."""
    plans = st.builds(
        plan,
        n_items=st.integers(1, 2),
        number=st.integers(1, 2),
        run_key=st.sampled_from([key("greedy"), key("drawn")]),
    )
    return st.one_of(
        plans,
        st.builds(lambda each, score: observed(each, [answer(score)])[0], plans, st.floats(0, 1)),
        plans.map(unscorable),
        st.builds(completed, plans, st.integers(0, 2)),
    )


def agreeing(n: int) -> SearchStrategy[tuple[History, ...]]:
    """Return what some ledgers may be told that never contradict each other."""
    return histories(10).flatmap(
        lambda facts: (
            st.tuples(*[st.lists(st.builds(Told, STREAMS, st.sampled_from(facts)), max_size=8)] * n)
            if facts
            else st.just(((),) * n)
        )
    )


@contextmanager
def recording(*all_told: History) -> Iterator[list[Ledger]]:
    """Record histories, each in a ledger and an hour of its own."""
    with ExitStack() as stack:
        ledgers = []
        for hour, history in enumerate(all_told):
            now = partial(NOON.__add__, timedelta(hours=hour))
            ledger = stack.enter_context(Ledger.in_memory(now))
            for each in history:
                with suppress(KeyConflict):
                    ledger.append(each.stream, [each.event])
            ledgers.append(ledger)
        yield ledgers


def merged(into: History, *others: History) -> Mapping[bytes, Event]:
    """Return the facts that a ledger holds after it took others in."""
    with recording(into, *others) as (ledger, *rest):
        for other in rest:
            merge_ledger(ledger, other.rows())
        return facts_of(ledger)


def facts_of(ledger: Ledger) -> Mapping[bytes, Event]:
    """Return a ledger's facts by key, but for where they came from."""
    return {
        key_of(row.event_id): row.decode().event
        for row in ledger.rows()
        if row.type != type_name(LedgerMerged)
    }


@given(ours=told(), theirs=told())
def test_merging_again_changes_nothing(ours: History, theirs: History) -> None:
    """A script that merges every night must not grow the ledger every night."""
    with recording(ours, theirs) as (ledger, other):
        first = merge_ledger(ledger, other.rows())
        head = ledger.head

        again = merge_ledger(ledger, other.rows())

        assert ledger.head == head
        assert again == first._replace(n_new=0, n_known=first.n_known + first.n_new)


@given(ours=told(), theirs=told())
def test_merging_either_way_differs_in_no_more_than_what_follows(
    ours: History, theirs: History
) -> None:
    """Even where they contradict each other; an outcome can be reconciled again."""
    one, other = merged(ours, theirs), merged(theirs, ours)

    in_one_alone = {**one, **other}.keys() - (one.keys() & other.keys())
    assert all(isinstance({**one, **other}[each], FOLLOWING) for each in in_one_alone)


@given(three=agreeing(3))
def test_ledgers_are_merged_in_any_order(three: tuple[History, ...]) -> None:
    """Ten people who share a tournament need not agree who goes first, or takes all others."""
    mine, yours, theirs = three
    with recording(mine, yours, theirs) as (first, second, third):
        merge_ledger(second, third.rows())
        merge_ledger(first, second.rows())
        by_way_of_the_second = facts_of(first)

    assert by_way_of_the_second == merged(mine, yours, theirs) == merged(theirs, yours, mine)


@given(theirs=told())
def test_an_empty_ledger_becomes_an_exact_copy(theirs: History) -> None:
    """The same head: checkpoints that were noted of the one hold for the other."""
    with recording((), theirs) as (ledger, other):
        taken = merge_ledger(ledger, other.rows())

        assert ledger.head == other.head
        assert list(ledger.rows()) == list(other.rows())
        assert taken == MergeCounts(n_new=other.head.position, n_known=0, n_left=0, conflicts=())


@given(ours=told(), theirs=told())
def test_ours_is_kept_and_what_became_of_theirs_is_told(ours: History, theirs: History) -> None:
    """Every checkpoint noted before holds; two replies to one query are not both counted."""
    with recording(ours, theirs) as (ledger, other):
        before, head, n_offered = list(ledger.rows()), ledger.head, other.head.position
        mine, yours = facts_of(ledger), facts_of(other)

        taken = merge_ledger(ledger, other.rows())

        kept = facts_of(ledger)
        rows = {row.position: row for row in ledger.rows()}
        assert list(ledger.rows(until=head.position)) == before
        assert ledger.chain_at(head.position) == head.chain
        assert audit(ledger) == ()
    contradicted = {each for each in mine.keys() & yours.keys() if mine[each] != yours[each]}
    in_conflict = {key_of(each.row.event_id): each for each in taken.conflicts}
    left = contradicted - in_conflict.keys()
    assert in_conflict.keys() <= contradicted
    assert all(isinstance(yours[each], FOLLOWING) for each in left)
    assert all(kept[each] == event for each, event in mine.items())
    for each, conflict in in_conflict.items():
        assert key_of(rows[conflict.position].event_id) == each
        assert conflict.row.decode().event == yours[each]
    n_left = taken.n_left + taken.n_unfounded
    assert taken.n_new + taken.n_known + n_left + len(taken.conflicts) == n_offered
    assert len(kept) == len(mine) + taken.n_new


def test_a_merged_event_keeps_its_id_its_time_and_its_leaf() -> None:
    """It is the same record wherever it lies: only its place is new."""
    ours, theirs = [Told(STREAM, verdicts(1)[0])], [Told(STREAM, verdicts(2)[1])]
    with recording(ours, theirs) as (ledger, other):
        merge_ledger(ledger, other.rows())

        (row,) = other.rows()
        _, taken, note = ledger.rows()

    assert taken == row._replace(position=2, version=2, chain=taken.chain)
    assert note.decode().event == LedgerMerged(head=other_head(theirs), n_events=1, n_taken=1)


def other_head(history: History) -> Digest:
    """Return the chain's value after a history that was recorded as the second of two."""
    with recording((), history) as (_, other):
        return other.head.chain


def test_each_stream_that_grew_says_from_where() -> None:
    """Who follows one tournament sees the seam in its own stream."""
    streams = [StreamId("a"), StreamId("b"), StreamId("c")]
    ours = [Told(streams[0], verdicts(1)[0])]
    theirs = [Told(stream, verdicts(1)[0]) for stream in streams]
    with recording(ours, theirs) as (ledger, other):
        merge_ledger(ledger, other.rows())

        notes = [each for each in ledger.read() if isinstance(each.event, LedgerMerged)]

    assert [each.stream for each in notes] == streams[1:]
    assert [each.version for each in notes] == [2, 2]


def test_an_outcome_of_a_reply_that_was_not_taken_is_left_out() -> None:
    """It would stand beside a verdict that says otherwise."""
    ours = [Told(STREAM, verdict(key("0"), "A"))]
    theirs = [
        Told(STREAM, event)
        for event in (
            verdict(key("0"), "B"),
            verdict(key("1"), "B"),
            outcome(),
            outcome(forward="1"),
        )
    ]
    with recording(ours, theirs) as (ledger, other):
        taken = merge_ledger(ledger, other.rows())

        events = [each.event for each in ledger.read()]

    assert (taken.n_new, taken.n_left, len(taken.conflicts)) == (2, 1, 1)
    assert events[:3] == [ours[0].event, theirs[1].event, theirs[3].event]


def test_an_event_that_cannot_be_read_stops_a_merge_whole() -> None:
    """Half of another's history would be taken for all of it."""
    theirs = [Told(STREAM, event) for event in opened()]
    with recording([Told(STREAM, verdicts(1)[0])], theirs) as (ledger, other):
        before = list(ledger.rows())
        *rows, last = other.rows()

        with pytest.raises(UnreadableEvent, match="unknown event type 'PairSettled'"):
            merge_ledger(ledger, [*rows, last._replace(type="PairSettled")])

        assert list(ledger.rows()) == before
        assert len(ledger.append(STREAM, verdicts(2))) == 2


def test_a_merge_without_room_takes_nothing_in(tmp_path: Path) -> None:
    """Run again once there is room, it takes all."""
    path = tmp_path / "run.ledger"
    many = [Told(STREAM, event) for event in verdicts(300)]
    with recording(many) as (other,):
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, verdicts(1))
            (n_pages,) = ledger.connection.execute("PRAGMA page_count").fetchone()
            ledger.connection.execute(f"PRAGMA max_page_count = {n_pages + 3}")
            with pytest.raises(CannotWrite, match="full"):
                merge_ledger(ledger, other.rows())
            assert ledger.head.position == 1
        with Ledger.open(path) as ledger:
            taken = merge_ledger(ledger, other.rows())
            assert audit(ledger) == ()

    assert (taken.n_new, taken.n_known) == (299, 1)
