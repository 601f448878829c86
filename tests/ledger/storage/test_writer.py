"""Event ids and keys: a fact is found again whenever it is told again."""

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.auditing.audit import audit
from ledger.errors import FromTheFuture, StaleVersion, UnreadableEvent
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM, key, verdicts
from tests.support.faults.hostile import loosen
from tests.support.goldens.events import SAMPLES

LATEST = datetime.max.replace(tzinfo=UTC)


def reconciled(dimension: str, prompt_id: str) -> Event:
    """Return an outcome of this prompt on this dimension."""
    return replace(SAMPLES["PairReconciled.v1.json"], dimension=dimension, prompt_id=prompt_id)


def ids(now: datetime) -> list[str]:
    """Return the ids that three events get in a ledger at a time."""
    with Ledger.in_memory(now=lambda: now) as ledger:
        ledger.append(STREAM, verdicts(3))
        return [row.event_id.hex() for row in ledger.rows()]


def test_an_event_id_never_changes_its_law() -> None:
    """A resumed run finds its events by ids that an older tourney gave."""
    since_epoch_ms = 1_777_291_200_000
    name = f'["main","VerdictReceived","{key("0")}"]'

    first, *_ = ids(NOON)

    assert first[:12] == f"{since_epoch_ms:012x}"
    assert first[12:] == hashlib.sha256(name.encode()).hexdigest()[:20]


def test_a_fact_told_again_later_is_found_by_its_key() -> None:
    """A retry comes later than the first try, and its id would begin with another time."""
    times = iter((NOON, NOON + timedelta(days=1))).__next__
    with Ledger.in_memory(now=times) as ledger:
        (first,) = ledger.append(STREAM, verdicts(1))
        again, late = ledger.append(STREAM, verdicts(2))
        rows = [row.event_id.hex() for row in ledger.rows()]

    assert again == first._replace(is_new=False)
    assert late.is_new
    assert rows == [ids(NOON)[0], ids(NOON + timedelta(days=1))[1]]


def test_ids_are_in_order_of_time() -> None:
    """Ids in no order would spread an append over the whole index of a long ledger."""
    minutes = count()
    with Ledger.in_memory(now=lambda: NOON + timedelta(minutes=next(minutes))) as ledger:
        for event in verdicts(20):
            ledger.append(STREAM, [event])
        prefixes = [row.event_id[:6] for row in ledger.rows()]

    assert prefixes == sorted(set(prefixes))


def test_ids_keep_the_parts_of_a_key_apart(ledger: Ledger) -> None:
    """Labels may hold any character, a separator too, without meeting in one id."""
    one, other = reconciled("a\0b", "c"), reconciled("a", "b\0c")

    ledger.append(StreamId("main"), [one, other])

    first, second = ledger.rows()
    assert first.event_id != second.event_id


def test_what_was_committed_before_a_transaction_is_read_inside_it() -> None:
    """A merge learns so what others have, and they append nothing meanwhile."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, [*verdicts(2), reconciled("a", "b")])
        with ledger.writing() as writer:
            found = list(writer.of_types({"VerdictReceived"}))

    assert [each.event for each in found] == list(verdicts(2))


def merged_at(recorded_at: datetime, path: Path) -> list[datetime]:
    """Merge an event of that time into a ledger at noon, append, and return all times."""
    with Ledger.in_memory(now=lambda: recorded_at) as theirs:
        theirs.append(STREAM, verdicts(1))
        [row] = theirs.rows()
    with Ledger.open(path, now=lambda: NOON) as ours:
        try:
            with ours.writing() as writer:
                writer.merge(row)
        finally:
            ours.append(STREAM, verdicts(1, after=1))
            times = [each.recorded_at for each in ours.read()]
    return times


@pytest.mark.parametrize("recorded_at", [LATEST, NOON + timedelta(days=1, seconds=1)])
def test_an_event_of_the_far_future_is_not_merged(path: Path, recorded_at: datetime) -> None:
    """Every later event would get its time; ours keep the time of our clock."""
    with pytest.raises(FromTheFuture, match=r"this machine's clock says 2026-04-27 12:00 UTC"):
        merged_at(recorded_at, path)

    with Ledger.read_only(path) as ours:
        assert [each.recorded_at for each in ours.read()] == [NOON]


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(days=1)])
def test_a_clock_that_goes_a_little_ahead_is_merged(path: Path, ahead: timedelta) -> None:
    """Two machines never agree, and an as-of time must split a ledger in two."""
    assert merged_at(NOON + ahead, path) == [NOON + ahead] * 2


def test_a_last_row_that_is_damaged_takes_no_event_after_it(path: Path) -> None:
    """Its link would be the next one's beginning."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(2))
        loosen(ledger.connection)
        ledger.connection.execute("UPDATE event SET chain = NULL WHERE position = 2")

        with pytest.raises(UnreadableEvent, match="position 2: its row is damaged"):
            ledger.append(STREAM, verdicts(1, after=2))


@given(batches=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 40), max_size=12))))
def test_two_writers_record_each_fact_once(batches: list[tuple[bool, list[int]]]) -> None:
    """Whatever each of them has read: a fact that is not found is paid for twice."""
    facts, known = verdicts(41), set[int]()
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.ledger")
        with Ledger.open(path) as one, Ledger.open(path) as other:
            for is_first, numbers in batches:
                ledger = one if is_first else other
                receipts = ledger.append(STREAM, [facts[number] for number in numbers])
                told = zip(numbers, receipts, strict=True)
                assert {number for number, each in told if each.is_new} == set(numbers) - known
                known |= set(numbers)
            assert audit(one) == ()


def test_a_stream_goes_on_where_it_ended_behind_the_events_of_others(path: Path) -> None:
    """Its version is the number of its events."""
    other = StreamId("other")
    with Ledger.open(path) as ledger:
        ledger.append(other, verdicts(2))
        ledger.append(STREAM, verdicts(9))
    with Ledger.open(path) as ledger:
        with pytest.raises(StaleVersion):
            ledger.append(other, verdicts(1, after=2), expected_version=1)
        (late,) = ledger.append(other, verdicts(1, after=2), expected_version=2)

    assert late.recorded.version == 3
