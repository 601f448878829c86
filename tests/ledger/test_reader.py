"""Reading up to a place or a time, and finding events without reading all of them."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.merge import merge_ledger
from ledger.auditing.audit import audit
from ledger.errors import CannotRead, UnreadableEvent
from ledger.events.registry import Event
from ledger.identity import StreamId, key_of
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM, opened, verdicts
from tests.support.faults.damage import hide, mislead
from tests.support.faults.hostile import loosen
from tests.support.strategies.events import histories

OTHER = StreamId("other")
_FEW_STEPS = 20
SECONDS = st.integers(min_value=0, max_value=9)


def after_noon(seconds: float) -> datetime:
    """Return a time."""
    return NOON + timedelta(seconds=seconds)


def ledger_of(history: list[Event], pauses: list[int]) -> Ledger:
    """Record events one by one, each so many seconds after the last."""
    times = iter([after_noon(second) for second in accumulate(pauses)])
    ledger = Ledger.in_memory(now=times.__next__)
    for event in history:
        ledger.append(STREAM, [event])
    return ledger


def pauses(n: int = 8) -> st.SearchStrategy[list[int]]:
    """Return seconds between events; some follow at once."""
    return st.lists(st.integers(0, 3), min_size=n, max_size=n)


@given(history=histories(), as_of=st.integers(min_value=0, max_value=9))
def test_as_of_a_position_is_the_prefix_up_to_it(history: list[Event], as_of: int) -> None:
    """What was published of a ledger is folded again from the very same events."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, history)
        everything = list(ledger.read())

        read = list(ledger.read(until=as_of))
        rows = list(ledger.rows(until=as_of))

    assert read == everything[:as_of]
    assert [row.decode() for row in rows] == read


@given(history=histories(), pauses=pauses(), seconds=SECONDS)
def test_as_of_a_time_is_what_was_recorded_by_then(
    history: list[Event], pauses: list[int], seconds: int
) -> None:
    """A user asks for the standings of Monday noon, and knows no position."""
    at = after_noon(seconds)
    with ledger_of(history, pauses) as ledger:
        everything = list(ledger.read())

        read = list(ledger.read(until=ledger.position_at(at)))

    assert read == [each for each in everything if each.recorded_at <= at]


def test_the_last_position_known_at_a_time_is_told() -> None:
    """None before the first event; all of them after the last."""
    with ledger_of([*verdicts(3)], [2, 0, 3]) as ledger:
        found = [ledger.position_at(after_noon(seconds)) for seconds in (1, 2, 4, 5)]

    assert found == [0, 2, 2, 3]


@given(ours=histories(4), theirs=histories(4), pauses=pauses(), seconds=SECONDS)
def test_as_of_a_time_of_a_merged_ledger_is_the_longest_prefix_known_then(
    ours: list[Event], theirs: list[Event], pauses: list[int], seconds: int
) -> None:
    """Its times go back at the seam; nothing that was recorded later may be among what is read."""
    at = after_noon(seconds)
    with ledger_of(ours, pauses) as ledger, ledger_of(theirs, pauses[::-1]) as other:
        ledger._now = lambda: after_noon(99)
        merge_ledger(ledger, other.rows())
        times = [each.recorded_at for each in ledger.read()]

        position = ledger.position_at(at)

    assert all(time <= at for time in times[:position])
    assert all(time > at for time in times[position : position + 1])


@given(history=histories(), stops=st.lists(st.integers(0, 9), max_size=4), of_other=SECONDS)
def test_reading_may_stop_anywhere_and_go_on_from_there(
    history: list[Event], stops: list[int], of_other: int
) -> None:
    """A view that is brought up to date misses no event and is given none twice."""
    with Ledger.in_memory() as ledger:
        ledger.append(OTHER, verdicts(of_other))
        ledger.append(STREAM, history)
        head = ledger.head.position
        places = sorted({0, head, *(stop for stop in stops if stop < head)})

        parts = [list(ledger.read(after=a, until=b)) for a, b in pairwise(places)]
        parts_of_one = [
            list(ledger.read(after=a, until=b, stream=STREAM)) for a, b in pairwise(places)
        ]

        assert [each for part in parts for each in part] == list(ledger.read())
        assert [each for part in parts_of_one for each in part] == list(ledger.read(stream=STREAM))


@pytest.mark.no_cover
@given(stops=st.lists(st.integers(0, 2_100), max_size=3))
def test_pages_and_stops_need_not_meet(long_ledger: Ledger, stops: list[int]) -> None:
    """Long ledgers are read page by page, wherever the last reading stopped."""
    places = sorted({0, 2_100, *stops})

    read = [
        each.position
        for a, b in pairwise(places)
        for each in long_ledger.read(after=a, until=b, types={"VerdictReceived"})
    ]

    assert read == list(range(1, 2_101))


@pytest.fixture(scope="module")
def long_ledger() -> Iterator[Ledger]:
    """Give a ledger of more than two pages, of two streams, to be read only."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, verdicts(2_100))
        ledger.append(OTHER, verdicts(3))
        ledger.append(STREAM, opened())
        yield ledger


def n_steps(
    ledger: Ledger, stream: StreamId | None, types: set[str] | None, expected: int = 3
) -> int:
    """Count the steps that SQLite takes to find and read so many events."""
    steps: list[None] = []
    ledger.connection.set_progress_handler(lambda: steps.append(None), 1)
    assert len(list(ledger.read(until=5_000, stream=stream, types=types))) == expected
    ledger.connection.set_progress_handler(None, 0)
    return len(steps)


@pytest.mark.no_cover
@pytest.mark.parametrize("types", [None, {"VerdictReceived"}])
def test_a_stream_is_read_without_a_look_at_the_others(
    long_ledger: Ledger, types: set[str] | None
) -> None:
    """A small set beside one of millions of battles is read as if it stood alone."""
    with Ledger.in_memory() as alone:
        alone.append(OTHER, verdicts(3))

        most = n_steps(alone, OTHER, types) + _FEW_STEPS
        assert n_steps(long_ledger, OTHER, types) <= most


@given(history=histories(), until=st.integers(0, 9))
def test_events_of_some_types_are_found_as_by_reading_all(history: list[Event], until: int) -> None:
    """Of every stream, in order."""
    with Ledger.in_memory() as ledger:
        for stream in (STREAM, OTHER):
            ledger.append(stream, history)

        for types in ({"VerdictReceived"}, {"PromptRegistered", "TournamentOpened"}, set[str]()):
            found = [*ledger.read(until=until, types=types)]

            assert found == [*ledger.read(after=0, until=until, types=types)]


@pytest.mark.no_cover
def test_a_long_stream_is_read_page_by_page_in_order(long_ledger: Ledger) -> None:
    """Between events of others, and from any position to any other."""
    found = [each.position for each in long_ledger.read(after=5, stream=STREAM)]
    some = long_ledger.read(after=5, until=2_105, stream=STREAM, types={"VerdictReceived"})

    assert found == [*range(6, 2_101), *range(2_104, long_ledger.head.position + 1)]
    assert [each.position for each in some] == [*range(6, 2_101)]


@pytest.mark.no_cover
def test_few_events_are_found_among_many_of_all_streams(long_ledger: Ledger) -> None:
    """A report looks for evaluations in every ledger, and most have none."""
    with Ledger.in_memory() as alone:
        alone.append(STREAM, verdicts(1))
        alone.append(OTHER, opened())

        most = n_steps(alone, None, {"JudgeRegistered"}, 1) + _FEW_STEPS
        assert n_steps(long_ledger, None, {"JudgeRegistered"}, 1) <= most


def test_the_streams_with_events_of_a_type_are_found() -> None:
    """In the order in which they began, as all of them are."""
    with Ledger.in_memory() as ledger:
        ledger.append(OTHER, verdicts(1))
        ledger.append(STREAM, opened())

        assert ledger.streams() == (OTHER, STREAM)
        assert ledger.streams(types={"VerdictReceived", "TournamentOpened"}) == (OTHER, STREAM)
        assert ledger.streams(types={"TournamentOpened"}) == (STREAM,)
        assert ledger.streams(types=set()) == ()


def append(ledger: Ledger, *events: Event) -> tuple[StoredEvent, ...]:
    """Append events and return how they are stored."""
    after = ledger.head.position
    ledger.append(STREAM, events)
    return tuple(ledger.rows(after=after))


def test_the_newest_events_are_found_in_order(ledger: Ledger) -> None:
    """As a log shows its last lines: as of a position, or of one type, whatever is between."""
    ledger.append(STREAM, verdicts(1))
    [opening] = append(ledger, *opened()[:1])
    appended = append(ledger, *verdicts(5, after=1))

    assert ledger.newest_rows(limit=2) == appended[3:]
    assert ledger.newest_rows(until=5, limit=2) == appended[1:3]
    assert ledger.newest_rows(event_type="TournamentOpened", limit=1) == (opening,)


@pytest.mark.parametrize("n_characters", [17, 31, 32])
def test_an_event_is_found_by_the_beginning_of_its_id(ledger: Ledger, n_characters: int) -> None:
    """Ids are long: users copy as much as tells them apart, in either case."""
    _, wanted, _ = append(ledger, *verdicts(3))

    found = ledger.rows_with_id(wanted.event_id.hex()[:n_characters].upper())

    assert found == (wanted,)


@pytest.mark.parametrize("beginning", ["%", "_", "0%", "\\", "zz"])
def test_what_begins_no_id_finds_nothing(ledger: Ledger, beginning: str) -> None:
    """A wildcard of SQL's must not find every event."""
    ledger.append(STREAM, verdicts(3))

    found = ledger.rows_with_id(beginning)

    assert found == ()


def test_events_are_read_at_their_positions(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are sought at a time, and in order."""
    monkeypatch.setattr("ledger.reader._LOOKED_UP", 2)
    first, _, third, _, fifth = append(ledger, *verdicts(5))

    assert [*ledger.at([5, 1, 3])] == [row.decode() for row in (first, third, fifth)]
    assert [*ledger.at([])] == []


READS: dict[str, Callable[[Ledger], object]] = {
    "events": lambda ledger: [*ledger.read()],
    "events of a type": lambda ledger: [*ledger.read(types={"VerdictReceived"})],
    "rows": lambda ledger: [*ledger.rows()],
    "the newest": lambda ledger: ledger.newest_rows(limit=None),
    "an id": lambda ledger: ledger.rows_with_id(""),
    "streams": lambda ledger: ledger.streams(),
    "the chain": lambda ledger: ledger.chain_at(1),
}
DAMAGED = {
    "event_id": {"rows", "the newest", "an id"},
    "stream": {"events", "rows", "the newest", "an id", "streams"},
    "version": {"events", "rows", "the newest", "an id"},
    "type": {"events", "rows", "the newest", "an id"},
    "schema_version": {"events", "events of a type", "rows", "the newest", "an id"},
    "recorded_us": {"events", "events of a type", "rows", "the newest", "an id"},
    "data": {"events", "events of a type", "rows", "the newest", "an id"},
    "leaf": {"rows", "the newest", "an id"},
    "chain": {"events", "events of a type", "rows", "the newest", "an id", "the chain"},
}


@pytest.mark.parametrize("field", DAMAGED)
def test_a_row_with_a_field_that_is_gone_is_damage_and_no_crash(ledger: Ledger, field: str) -> None:
    """SQLite reads zeros in the head of a row as NULL, whatever the table forbids."""
    ledger.append(STREAM, verdicts(3))
    loosen(ledger.connection)
    ledger.connection.execute(f"UPDATE event SET {field} = NULL WHERE position = 1")  # noqa: S608 (constants)
    if field == "stream":
        ledger.connection.execute("UPDATE event SET version = 1")

    for read in DAMAGED[field]:
        with pytest.raises((UnreadableEvent, CannotRead), match=r"damaged|unknown event type"):
            READS[read](ledger)


def test_positions_that_go_back_within_a_page_are_damage(ledger: Ledger) -> None:
    """An audit that reads on after each bad row would go round for ever."""
    ledger.append(STREAM, verdicts(3))
    twice = "SELECT position FROM event WHERE position > ? ORDER BY -position LIMIT ?"

    with pytest.raises(CannotRead, match="is damaged: positions do not increase after 0; restore"):
        [*ledger.pages(twice, 0)]


@pytest.mark.parametrize("change", ["stream = 'main', version = 1", "version = 2"])
def test_streams_that_cannot_be_told_apart_are_damage(ledger: Ledger, change: str) -> None:
    """Else a damaged ledger would hold no tournament, or one many times, and its user be blamed."""
    ledger.append(STREAM, verdicts(2))
    loosen(ledger.connection)
    ledger.connection.execute(f"UPDATE event SET {change}")  # noqa: S608 (constants)

    with pytest.raises(CannotRead, match="damaged: its streams cannot be told apart"):
        ledger.streams()


def test_an_index_that_leads_to_another_event_is_damage(path: Path) -> None:
    """Another's answer would be taken for the one that was looked for."""
    with Ledger.open(path) as ledger:
        first, second = (key_of(row.event_id) for row in append(ledger, *verdicts(2)))
    mislead(path, first, second)

    with Ledger.open(path) as ledger, pytest.raises(UnreadableEvent, match="the key of another"):
        ledger.append(STREAM, verdicts(1))


@pytest.mark.parametrize("index", ["type_in_stream", "stream_began", "event_of_key"])
def test_what_an_index_hides_is_found_by_an_audit(filed: Path, index: str) -> None:
    """It may be what ratings are made of."""
    hide(filed, index)

    with Ledger.read_only(filed) as ledger:
        assert [each.why for each in audit(ledger) if "SQLite finds the file damaged" in each.why]
        with pytest.raises(CannotRead, match="is damaged: row 1 missing from index"):
            ledger.require_sound_pages()


def test_an_index_that_hides_events_is_damage(filed: Path) -> None:
    """Else ratings would rest on what is left, without a word."""
    hide(filed, "type_in_stream")

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(CannotRead, match="damaged: events are missing or hidden; restore a backup"),
    ):
        ledger.require_whole()


def test_a_sound_ledger_is_sound_and_whole(ledger: Ledger) -> None:
    """An empty one, and one of several streams."""
    for stream in (None, STREAM, OTHER):
        if stream is not None:
            ledger.append(stream, verdicts(2))

        ledger.require_sound_pages()
        ledger.require_whole()
