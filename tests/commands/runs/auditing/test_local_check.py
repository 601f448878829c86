"""A check of each range, and one of what is doubtful, find what one check of all events finds."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.ports import no_progress
from commands.runs.auditing.local_check import LocalCheck
from commands.runs.auditing.places import KEYED, KeyPlaces
from commands.runs.auditing.verify import verify
from ledger.events.judging import JudgeQueryFailed, PairReconciled, VerdictReceived
from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId
from ledger.reader import Columns
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.event_consistency import ConsistencyCheck
from tests.support.builders.events import STREAM, key, known, opened, verdict
from tests.support.builders.games import CHANGE, forge_with_hashes, play
from tests.support.builders.money import put
from tests.support.builders.worlds import answered, matches_of
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
N_ROWS = 7  # of a page
MATCH = matches_of(known(*answered(opened())))[0]
QUERY = put(MATCH, MATCH.forward)
FALSE: dict[type[Event], dict[str, str]] = {
    VerdictReceived: {"verdict": "TIE"},
    PairReconciled: {"outcome": "tie"},
}


def row_of(recorded: Recorded) -> Columns:
    """Return the row of an event, as an audit reads it."""
    event = recorded.event
    kind = type_name(event).encode(), event.schema_version
    data = EVENTS.encode(event)
    stream, version, link = recorded.stream.encode(), recorded.version, recorded.link
    return (recorded.position, b"", stream, *kind, recorded.recorded_us, data, version, b"", link)


def placed(events: list[tuple[StreamId, Event]]) -> list[Recorded]:
    """Give events their places, also what no ledger takes twice."""
    return [
        Recorded(at, stream, at, at, bytes(32), event)
        for at, (stream, event) in enumerate(events, 1)
    ]


def with_queries(told: list[Event]) -> list[Event]:
    """Put the query of each answer of a judge before it."""
    return [
        each
        for event in told
        for each in (
            (replace(QUERY, query_key=event.query_key), event)
            if isinstance(event, VerdictReceived | JudgeQueryFailed)
            else (event,)
        )
    ]


def faults_of(events: list[Recorded]) -> list[tuple[int, str]]:
    """Check events one after the other, knowing all before them."""
    meaning = ConsistencyCheck()
    return [
        (each.position, why)
        for each in events
        for why in meaning.faults_of(each.event, each.stream, is_redacted=each.redacted)
    ]


def checked_again(events: list[Recorded], cuts: list[int]) -> list[Recorded]:
    """Return the events that need another check after one in ranges."""
    edges = sorted({0, len(events), *(cut % (len(events) + 1) for cut in cuts)})
    found = []
    for after, last in pairwise(edges):
        check, rows = LocalCheck(()), [row_of(each) for each in events[after:last]]
        for start in range(0, len(rows), N_ROWS):
            check.add(rows[start : start + N_ROWS])
        found.append(check.result())
    places = KeyPlaces.of(each.notes for each in found)
    doubtful = np.unique(np.concatenate([each.doubtful for each in found]))
    chosen = {*doubtful.tolist(), *places.to_compare(doubtful).tolist()}
    return [each for each in events if each.position in chosen]


@given(told=tournament_histories(), data=st.data())
def test_two_checks_find_what_one_check_of_all_events_finds(
    told: list[Event], data: st.DataObject
) -> None:
    """Whatever is missing, there twice, in another order, of another tournament, or false."""
    told = with_queries(told)
    events: list[tuple[StreamId, Event]] = []
    places = st.integers(0, len(told) - 1)
    fates = data.draw(st.lists(st.tuples(places, st.integers(0, 9)), max_size=12))
    changed = dict(fates)
    for n, event in enumerate(told):
        match changed.get(n):
            case 0 | 8:
                pass
            case 1:
                events += [(STREAM, event)] * 2
            case 2:
                events += [(STREAM, event), (OTHER, event)]
            case 3:
                events += [(STREAM, replace(event, **FALSE.get(type(event), {})))]
            case 4:
                events.insert(len(events) // 2, (OTHER, event))
            case 5:
                events += [(OTHER, event)]
            case 6:  # with what follows it: a query and its answer
                middle = len(events) // 2
                events[middle:middle] = [(STREAM, each) for each in told[n : n + 2]]
                events += [(STREAM, event)]
            case _:
                events += [(STREAM, event)]
    events += [(STREAM, told[n]) for n, fate in fates if fate in {7, 8}]
    all_of_them = placed(events)
    cuts = data.draw(st.lists(st.integers(0, 200), max_size=3))

    again = checked_again(all_of_them, cuts)

    assert faults_of(again) == faults_of(all_of_them)


def test_what_follows_from_events_nearby_is_not_checked_again(tmp_path: Path) -> None:
    """Nearly all of a ledger: to check everything again would take as long as the first time."""
    play(tmp_path / "tournament.db")
    with Ledger.read_only(tmp_path / "tournament.db") as ledger:
        events = [*ledger.read()]
    keyed = [each for each in events if type(each.event) in KEYED]
    last = {type(each.event): each for each in keyed}  # which a tournament's state names
    keys = {name for each in last.values() for name in each.event.natural_key if len(name) == 64}

    again = checked_again(events, [])

    assert [each for each in again if each not in keyed] == [
        each for each in events if each not in keyed
    ]
    assert [each for each in again if each in keyed] == [
        each for each in keyed if keys.intersection(each.event.natural_key)
    ]


def test_an_answer_that_is_there_twice_in_two_ranges_is_checked_again() -> None:
    """Each follows from the query in its own range; only their key tells."""
    twice, other = key("a query"), key("another")
    asked = [(STREAM, replace(QUERY, query_key=each)) for each in (twice, other)]
    said = [(STREAM, verdict(each)) for each in (twice, other)]
    events = placed([*asked, *said, *asked, *said])

    assert faults_of(checked_again(events, [4])) == faults_of(events)
    assert [at for at, _ in faults_of(events)] == [7, 8]


def test_what_has_a_key_that_is_no_digest_is_checked_again() -> None:
    """It has no number to be found by."""
    odd = [Digest("?"), Digest("-1"), key("a query")]
    events = placed([(STREAM, verdict(each)) for each in odd])

    assert checked_again(events, []) == events


@pytest.mark.parametrize("changed", [False, True])
def test_a_tournament_checked_in_ranges_has_the_faults_of_one_checked_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changed: bool
) -> None:
    """Several processes check a few events each, with a publication after them."""
    path = tmp_path / "tournament.db"
    play(path)
    if changed:
        with Ledger.read_only(path) as ledger:
            at = next(row.position for row in ledger.rows() if row.type == "PairReconciled")
        flipped = "CAST(replace(CAST(data AS TEXT), 'outcome\":\"b', 'outcome\":\"a') AS BLOB)"
        forge_with_hashes(path, CHANGE(f"data = {flipped}", at))

    with Ledger.read_only(path) as ledger:
        whole = verify(ledger, (), no_progress)
        monkeypatch.setattr("ledger.auditing.ranges._SHORT", 5)
        in_ranges = verify(ledger, (), no_progress)

    assert in_ranges == whole
    assert bool(whole.faults) == changed
