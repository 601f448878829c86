"""What a stream has on record: always what its events say one by one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.counts import StreamCounts, counts_of
from ledger.errors import UnreadableEvent
from ledger.events.judging import JudgeQueryFailed, PairReconciled, ScoreQuerySubmitted
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.batches import planned_batch
from tests.support.builders.events import STREAM, key
from tests.support.builders.scores import put_answer, scored_plan
from tests.support.builders.worlds import cup, failure_of, history
from tests.support.faults.hostile import loosen
from tests.support.strategies.events import histories as any_histories
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
NOTHING = StreamCounts(*[0] * len(StreamCounts._fields))


def counts(*events: Event) -> StreamCounts:
    """Return the counts of a stream of these events."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, events)
        return counts_of(ledger, [STREAM], ledger.head.position)[STREAM]


def one_by_one(events: Sequence[Event]) -> StreamCounts:
    """Count events as read back, in Python."""
    types = [type_name(event) for event in events]
    scored = {event.query_key for event in events if isinstance(event, ScoreQuerySubmitted)}
    failed = [event.query_key for event in events if isinstance(event, JudgeQueryFailed)]
    outcomes = [event.outcome for event in events if isinstance(event, PairReconciled)]
    made = [each for each in events if isinstance(each, ResponseGenerated)]
    tokens = [each.n_generated_tokens or 0 for each in made]
    return StreamCounts(
        responses=types.count("ResponseGenerated"),
        responses_failed=types.count("ResponseFailed"),
        tokens=sum(tokens),
        verdicts=types.count("VerdictReceived"),
        without_verdict=sum(each not in scored for each in failed),
        reconciled=len(outcomes),
        tied=outcomes.count("tie"),
        inconsistent=outcomes.count("inconsistent"),
        samples=types.count("SampleObserved"),
        unscorable=types.count("SampleUnscorable"),
        batches=types.count("JudgeBatchPlanned"),
    )


def short(events: Sequence[Event]) -> list[Event]:
    """Return events whose responses are of a length that a model could generate."""
    return [
        replace(event, n_generated_tokens=(event.n_generated_tokens or 0) % 100_000)
        if isinstance(event, ResponseGenerated)
        else event
        for event in events
    ]


@given(
    ours=(tournament_histories() | any_histories()).map(short),
    theirs=any_histories().map(short),
    data=st.data(),
)
def test_counts_are_those_of_the_events(
    ours: list[Event], theirs: list[Event], data: st.DataObject
) -> None:
    """Of each stream alone, and as of any position."""
    with Ledger.in_memory() as ledger:
        for stream, events in (
            (STREAM, ours),
            (OTHER, theirs),
            (STREAM, [planned_batch(key("last"))]),
        ):
            ledger.append(stream, events)
        until = data.draw(st.integers(min_value=0, max_value=ledger.head.position))

        for stream in (STREAM, OTHER):
            read = [each.event for each in ledger.read(stream=stream, until=until)]
            found = counts_of(ledger, [STREAM, OTHER], until)[stream]
            outcomes = [each.outcome for each in read if isinstance(each, PairReconciled)]
            assert found == one_by_one(read)
            assert found.decided == outcomes.count("a") + outcomes.count("b")


def test_a_score_that_is_missing_is_no_missing_verdict() -> None:
    """The column counts pairs' queries; those about an answer never had a verdict to give."""
    planned = scored_plan()

    found = counts(
        planned, put_answer(key("s"), planned, 0), failure_of(key("s")), failure_of(key("v"))
    )

    assert found == NOTHING._replace(without_verdict=1)
    assert found.decided == 0


def test_an_event_that_cannot_be_read_is_told_and_not_counted(ledger: Ledger) -> None:
    """A number that leaves out what is damaged would pass for the truth."""
    ledger.append(STREAM, history(cup(), "a"))
    loosen(ledger.connection)
    ledger.connection.execute("UPDATE event SET data = x'ff' WHERE type = 'PairReconciled'")

    with pytest.raises(UnreadableEvent):
        counts_of(ledger, [STREAM], ledger.head.position)
