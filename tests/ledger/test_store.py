"""Appending and reading."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit import audit
from ledger.chain import GENESIS
from ledger.connection import open_for_writing
from ledger.errors import CannotRead, CannotWrite, KeyConflict, StaleVersion, UnreadableEvent
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.store import Ledger, utc_now
from tests.builders import NOON, STREAM, key, verdict
from tests.ledger.facts import N_FILED, verdicts
from tests.ledger.hostile import tamper
from tests.strategies import histories

OTHER = StreamId("other")


def clock(*times: datetime) -> Callable[[], datetime]:
    """Return a clock that shows these times, one at each look."""
    return iter(times).__next__


def positions(ledger: Ledger) -> list[int]:
    """Return the positions of all events that can be read."""
    return [each.position for each in ledger.read()]


def test_appended_events_are_read_in_order(ledger: Ledger) -> None:
    """Everything else is folded from what this gives back."""
    events = verdicts(5)

    appended = ledger.append(STREAM, events)

    assert tuple(ledger.read()) == appended
    assert tuple(each.event for each in appended) == events
    assert [each.position for each in appended] == [1, 2, 3, 4, 5]


@settings(deadline=None, max_examples=40)
@given(history=histories(), as_of=st.integers(min_value=0, max_value=8))
def test_any_history_reads_back_as_it_was_told(history: list[Event], as_of: int) -> None:
    """No event of any content is changed by storing it, and as-of is the history's prefix."""
    with Ledger.in_memory() as ledger:
        appended = ledger.append(STREAM, history)

        everything = tuple(ledger.read())
        until = tuple(ledger.read(until=as_of))

    assert everything == appended
    assert [each.event for each in everything] == history
    assert until == appended[:as_of]


def test_versions_count_within_each_stream(ledger: Ledger) -> None:
    """Two tournaments in one file must not disturb each other's expected versions."""
    ledger.append(STREAM, verdicts(2))
    ledger.append(OTHER, verdicts(1))

    ledger.append(STREAM, verdicts(1, after=2))

    places = [(each.stream, each.version) for each in ledger.read()]
    assert places == [(STREAM, 1), (STREAM, 2), (OTHER, 1), (STREAM, 3)]


def test_reading_one_stream_leaves_out_the_others(ledger: Ledger) -> None:
    """A tournament's state is folded from its own events only."""
    ledger.append(STREAM, verdicts(1))
    (other,) = ledger.append(OTHER, verdicts(1))
    ledger.append(STREAM, verdicts(1, after=1))

    read = list(ledger.read(stream=OTHER))

    assert read == [other]


def test_streams_are_named_in_the_order_they_began(ledger: Ledger) -> None:
    """A user who asks what a file holds sees each tournament once."""
    ledger.append(OTHER, verdicts(2))
    ledger.append(STREAM, verdicts(1))
    ledger.append(OTHER, verdicts(1, after=2))

    streams = ledger.streams()

    assert streams == (OTHER, STREAM)


def test_a_failing_batch_leaves_nothing_behind(ledger: Ledger) -> None:
    """Half an opening would be a tournament that nobody planned."""
    before = ledger.append(STREAM, verdicts(2))
    conflicting = verdict(key("1"), "B")

    with pytest.raises(KeyConflict):
        ledger.append(STREAM, [*verdicts(3, after=2), conflicting])

    assert tuple(ledger.read()) == before


def test_a_stale_writer_is_refused(ledger: Ledger) -> None:
    """Two processes that resume one run must not both act on the same state."""
    ledger.append(STREAM, verdicts(3))

    with pytest.raises(
        StaleVersion, match=r"'main' is at version 3, expected 2: .* run the same command again"
    ) as caught:
        ledger.append(STREAM, verdicts(1, after=3), expected_version=2)

    refusal = caught.value
    assert (refusal.stream, refusal.expected, refusal.actual) == (STREAM, 2, 3)
    assert ledger.head.position == 3


def test_a_writer_at_the_newest_version_is_not_stale(ledger: Ledger) -> None:
    """Only the writer's own stream counts: another tournament may have moved on."""
    ledger.append(STREAM, verdicts(2))
    ledger.append(OTHER, verdicts(5))

    (appended,) = ledger.append(STREAM, verdicts(1, after=2), expected_version=2)

    assert (appended.position, appended.version) == (8, 3)


def test_the_same_fact_told_again_keeps_its_old_place(ledger: Ledger) -> None:
    """A retry after a lost acknowledgement must not record a verdict twice."""
    first = ledger.append(STREAM, verdicts(2))

    again = ledger.append(STREAM, verdicts(3))

    assert again[:2] == first
    assert positions(ledger) == [1, 2, 3]


def test_a_stale_writer_with_nothing_new_is_answered(ledger: Ledger) -> None:
    """A retry that repeats a batch carries the version from before that batch."""
    first = ledger.append(STREAM, verdicts(2), expected_version=0)

    again = ledger.append(STREAM, verdicts(2), expected_version=0)

    assert again == first


def test_a_stale_writer_with_other_content_is_told_that_it_is_stale(ledger: Ledger) -> None:
    """Two processes on one run make the same response in different times; neither is at fault."""
    ledger.append(STREAM, verdicts(1))
    other = verdict(key("0"), "B")

    with pytest.raises(StaleVersion):
        ledger.append(STREAM, [other], expected_version=0)


def test_the_same_fact_twice_in_a_batch_is_recorded_once(ledger: Ledger) -> None:
    """A bank that names a prompt twice must not end in an SQLite error."""
    (event,) = verdicts(1)

    first, second = ledger.append(STREAM, [event, event])

    assert first == second
    assert positions(ledger) == [1]


def test_other_content_under_the_same_key_is_refused(ledger: Ledger) -> None:
    """A second verdict on one query means that a judge was paid twice: somebody must look."""
    ledger.append(STREAM, verdicts(2))
    query = key("1")

    with pytest.raises(KeyConflict, match=r"already recorded at position 2 .*`tourney show 2`") as (
        caught
    ):
        ledger.append(STREAM, [verdict(query, "TIE")])

    assert caught.value.key == f"VerdictReceived {query}"
    assert caught.value.position == 2


def test_the_same_fact_in_another_stream_is_another_event(ledger: Ledger) -> None:
    """Two tournaments may share a judge query without sharing its verdict."""
    (here,) = ledger.append(STREAM, verdicts(1))

    (there,) = ledger.append(OTHER, verdicts(1))

    assert here.event == there.event
    assert here.event_id != there.event_id


def test_an_empty_batch_records_nothing(ledger: Ledger) -> None:
    """A command that finds nothing to do may still append its empty result."""
    appended = ledger.append(STREAM, (), expected_version=7)

    assert appended == ()
    assert ledger.head == (0, GENESIS.hex())


def test_events_outlive_the_process_that_told_them(path: Path) -> None:
    """A run is resumed from the file alone."""
    with Ledger.open(path) as ledger:
        appended = ledger.append(STREAM, verdicts(2))

    with Ledger.open(path) as reopened:
        more = reopened.append(STREAM, verdicts(1, after=2))

        assert tuple(reopened.read()) == (*appended, *more)


def test_recorded_time_never_goes_back() -> None:
    """A clock set back would give one time two as-of positions."""
    hour = timedelta(hours=1)
    with Ledger.in_memory(now=clock(NOON, NOON - hour, NOON + hour)) as ledger:
        for event in verdicts(3):
            ledger.append(STREAM, [event])

        times = [each.recorded_at for each in ledger.read()]

    assert times == [NOON, NOON, NOON + hour]


def test_a_ledger_with_no_clock_given_reads_the_real_one() -> None:
    """Recorded times are UTC, whatever the machine's time zone."""
    before = utc_now()
    with Ledger.in_memory() as ledger:
        (appended,) = ledger.append(STREAM, verdicts(1))

    after = utc_now()

    assert before <= appended.recorded_at <= after
    assert appended.recorded_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(("seconds", "expected"), [(-1, 0), (0, 1), (1.5, 2), (2, 3), (9, 3)])
def test_a_time_names_the_last_position_up_to_it(
    ledger: Ledger, seconds: float, expected: int
) -> None:
    """`--as-of` takes times, and every projection reads up to a position."""
    for event in verdicts(3):
        ledger.append(STREAM, [event])

    position = ledger.position_at(NOON + timedelta(seconds=seconds))

    assert position == expected


def test_any_time_of_an_empty_ledger_is_position_zero(ledger: Ledger) -> None:
    """As-of of an empty ledger is an empty history, not an error."""
    position = ledger.position_at(NOON)

    assert position == 0


def test_reading_goes_on_past_one_page(ledger: Ledger) -> None:
    """Long tournaments are read page by page; no event may fall between two pages."""
    ledger.append(STREAM, verdicts(2_500))

    everything = positions(ledger)
    part = [each.position for each in ledger.read(after=999, until=2_001)]

    assert everything == list(range(1, 2_501))
    assert part == list(range(1_000, 2_002))


def test_events_appended_while_reading_are_not_read(ledger: Ledger) -> None:
    """A view is of one moment: the head when reading began."""
    ledger.append(STREAM, verdicts(2))
    reading = ledger.read()
    first = next(reading)

    ledger.append(STREAM, verdicts(5, after=2))

    assert [first.position, *(each.position for each in reading)] == [1, 2]


def test_the_head_names_the_whole_history(ledger: Ledger) -> None:
    """A head noted elsewhere is what finds a tail that was cut off."""
    empty = ledger.head

    *_, last = ledger.append(STREAM, verdicts(3))

    assert empty == (0, GENESIS.hex())
    assert ledger.head == (3, last.chain)


def test_an_unknown_event_stops_reading_with_its_position(filed: Path) -> None:
    """Skipping what this tourney does not know would give ratings that are quietly wrong."""
    tamper(filed, "UPDATE event SET type = 'PairSettled' WHERE position = 2")

    with Ledger.read_only(filed) as ledger:
        reading = ledger.read()
        first = next(reading)
        with pytest.raises(UnreadableEvent, match="position 2: no event type 'PairSettled'") as (
            caught
        ):
            next(reading)

    assert first.position == 1
    assert caught.value.position == 2


def test_a_damaged_file_is_reported_not_a_traceback(filed: Path) -> None:
    """Disks fail: the user is told which file to replace."""
    healthy = filed.read_bytes()
    filed.write_bytes(healthy[:16_384] + bytes(len(healthy) - 16_384))

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(CannotRead, match=r"malformed; .*put an undamaged copy back"),
    ):
        list(ledger.rows())


def test_a_ledger_opened_to_read_refuses_to_append(filed: Path) -> None:
    """A report must not be able to change what it reports on."""
    with Ledger.read_only(filed) as ledger:
        with pytest.raises(CannotWrite, match="readonly"):
            ledger.append(STREAM, verdicts(1, after=N_FILED))

        assert positions(ledger) == [1, 2, 3]


def test_a_full_disk_loses_nothing_that_was_recorded(filed: Path) -> None:
    """Room runs out in the middle of long runs; what was paid for stays."""
    connection = open_for_writing(filed)
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {n_pages}")
    long = verdict(key("long")).model_copy(update={"reply": "x" * 1_000_000})

    with Ledger(connection, filed) as ledger:
        with pytest.raises(CannotWrite, match=r"full; nothing was recorded .* make room"):
            ledger.append(STREAM, [*verdicts(1, after=N_FILED), long])

        assert positions(ledger) == [1, 2, 3]
        assert list(audit(ledger.rows())) == []


def test_appending_goes_on_once_there_is_room(filed: Path) -> None:
    """The remedy that the message names must work, in the same process too."""
    connection = open_for_writing(filed)
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {n_pages}")
    long = verdict(key("long")).model_copy(update={"reply": "x" * 1_000_000})

    with Ledger(connection, filed) as ledger:
        with pytest.raises(CannotWrite):
            ledger.append(STREAM, [long])
        connection.execute("PRAGMA max_page_count = 1000000")
        (appended,) = ledger.append(STREAM, [long])

        assert appended.position == N_FILED + 1
        assert list(audit(ledger.rows())) == []
