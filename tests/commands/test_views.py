"""Views kept between commands: always what a fold from the first event gives."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from commands.views import up_to_date
from ledger.errors import UnreadableEvent
from ledger.events.event import Event
from ledger.head import Head
from ledger.identity import StreamId
from ledger.snapshots import Snapshot, Snapshots
from ledger.store import Ledger
from projections.tallies import OUTCOMES, REPLIES, RESPONSES, Tally
from projections.view import View
from tests.builders import STREAM, key, known, opened, responses, verdict
from tests.ledger.hostile import loosen
from tests.strategies import histories

OTHER = StreamId("other")
VIEWS = (RESPONSES, REPLIES, OUTCOMES)
SOME_VIEWS = st.lists(st.sampled_from(VIEWS), unique_by=lambda view: view.name)
ANSWERS = responses(known(*opened()))


class Kept(NamedTuple):
    """A place for snapshots, and the connection below it."""

    snapshots: Snapshots
    connection: sqlite3.Connection

    def drop(self, names: Collection[str]) -> None:
        """Lose some snapshots."""
        for name in names:
            self.connection.execute("DELETE FROM snapshot_2 WHERE projection = ?", (name,))

    def stored(self, view: View[Tally]) -> Snapshot:
        """Return what is kept of a view."""
        found = self.snapshots.load(view.name, view.version)
        assert found is not None
        return found


@pytest.fixture
def kept() -> Iterator[Kept]:
    """Give a place for snapshots that is gone at the end."""
    with closing(sqlite3.connect(":memory:")) as connection:
        yield Kept(Snapshots(connection), connection)


def dumps(
    ledger: Ledger, snapshots: Snapshots, until: Head, views: Sequence[View[Tally]] = VIEWS
) -> list[bytes]:
    """Bring views up to date and return their states' bytes."""
    states = up_to_date(ledger, views, snapshots, until)
    return [view.dump(state) for view, state in zip(views, states, strict=True)]


def folded(ledger: Ledger, until: Head) -> list[bytes]:
    """Fold every event from the first on, decoding all of them."""
    events = list(ledger.read(until=until.position))
    return [view.dump(view.advance(view.initial, events)) for view in VIEWS]


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_however_often_views_stop_and_are_lost_they_equal_a_rebuild(data: DataObject) -> None:
    """A stored state is a shortcut: nobody may see whether it was taken."""
    with Ledger.in_memory() as ledger, closing(sqlite3.connect(":memory:")) as connection:
        kept = Kept(Snapshots(connection), connection)
        heads = [ledger.head]
        for history in data.draw(st.lists(histories(max_size=4), max_size=5)):
            append_new(ledger, data.draw(st.sampled_from((STREAM, OTHER))), history)
            heads.append(ledger.head)
            some, until = data.draw(SOME_VIEWS), data.draw(st.sampled_from(heads))
            up_to_date(ledger, some, kept.snapshots, until)
            kept.drop(data.draw(st.sets(st.sampled_from([view.name for view in VIEWS]))))
        until = data.draw(st.sampled_from(heads))

        incremental = dumps(ledger, kept.snapshots, until)

        assert incremental == folded(ledger, until)
        kept.drop([view.name for view in VIEWS])
        assert dumps(ledger, kept.snapshots, until) == incremental


def append_new(ledger: Ledger, stream: StreamId, history: Sequence[Event]) -> None:
    """Append what a stream does not hold under the same key."""
    for event in history:
        named = {(type(each.event), *each.event.natural_key) for each in ledger.read(stream=stream)}
        if (type(event), *event.natural_key) not in named:
            ledger.append(stream, [event])


def test_views_at_different_places_are_caught_up_together(ledger: Ledger, kept: Kept) -> None:
    """One pass over the file, and no event counts twice for the view that was ahead."""
    ledger.append(STREAM, ANSWERS[:1])
    up_to_date(ledger, [RESPONSES], kept.snapshots, ledger.head)
    ledger.append(STREAM, [*ANSWERS[1:], verdict(key("query"))])
    up_to_date(ledger, [REPLIES], kept.snapshots, ledger.head)
    ledger.append(STREAM, [verdict(key("another query"))])

    counted = up_to_date(ledger, VIEWS, kept.snapshots, ledger.head)

    assert [tally.of(STREAM) for tally in counted] == [
        {"responses": 2, "tokens": 6},
        {"verdicts": 2},
        {},
    ]
    assert {kept.stored(view).position for view in VIEWS} == {ledger.head.position}


def test_what_is_up_to_date_is_neither_read_nor_stored_again(ledger: Ledger, kept: Kept) -> None:
    """Asking twice is free; a million events are not read for nothing."""
    ledger.append(STREAM, ANSWERS)
    up_to_date(ledger, VIEWS, kept.snapshots, ledger.head)
    n_changes = kept.connection.total_changes
    queries: list[str] = []
    ledger.connection.set_trace_callback(queries.append)

    up_to_date(ledger, VIEWS, kept.snapshots, ledger.head)

    assert kept.connection.total_changes == n_changes
    assert not [query for query in queries if "data" in query]


def test_an_earlier_head_is_answered_as_of_then(ledger: Ledger, kept: Kept) -> None:
    """A stored state knows too much for it, so it is folded again."""
    ledger.append(STREAM, ANSWERS[:1])
    earlier = ledger.head
    ledger.append(STREAM, ANSWERS[1:])
    up_to_date(ledger, [RESPONSES], kept.snapshots, ledger.head)

    (tally,) = up_to_date(ledger, [RESPONSES], kept.snapshots, earlier)

    assert tally.of(STREAM)["responses"] == 1


def test_a_view_whose_code_has_changed_is_folded_again(ledger: Ledger, kept: Kept) -> None:
    """What older code made of the events may mean something else."""
    ledger.append(STREAM, ANSWERS)
    up_to_date(ledger, [RESPONSES], kept.snapshots, ledger.head)
    newer = replace(REPLIES, name=RESPONSES.name, version=2)

    (tally,) = up_to_date(ledger, [newer], kept.snapshots, ledger.head)

    assert tally.counts == {}
    assert kept.snapshots.load(RESPONSES.name, 1) is None


def test_a_state_of_another_history_is_not_used(ledger: Ledger, kept: Kept) -> None:
    """The ledger was replaced by another, or by an older copy that went on differently."""
    with Ledger.in_memory() as other:
        other.append(OTHER, ANSWERS)
        up_to_date(other, VIEWS, kept.snapshots, other.head)
    ledger.append(STREAM, [*ANSWERS, verdict(key("query"))])

    assert dumps(ledger, kept.snapshots, ledger.head) == folded(ledger, ledger.head)


def test_a_state_of_a_longer_history_is_not_used(ledger: Ledger, kept: Kept) -> None:
    """An older copy was put back: it does not reach as far."""
    up_to = Snapshot("responses", 1, 99, key("chain"), b'{"counts":{"main":{"responses":9}}}')
    kept.snapshots.save([up_to])
    ledger.append(STREAM, ANSWERS)

    assert dumps(ledger, kept.snapshots, ledger.head) == folded(ledger, ledger.head)


@pytest.mark.parametrize("state", [b"", b"{}", b'{"counts": 3}', b"\xff"])
def test_a_state_that_cannot_be_read_is_folded_again(
    ledger: Ledger, kept: Kept, state: bytes
) -> None:
    """The side file may be deleted at any time, so damage to it may stop nobody."""
    ledger.append(STREAM, ANSWERS)
    head = ledger.head
    kept.snapshots.save([Snapshot("responses", 1, head.position, head.chain, state)])

    assert dumps(ledger, kept.snapshots, head) == folded(ledger, head)


def test_only_events_that_a_view_reads_are_decoded(ledger: Ledger, kept: Kept) -> None:
    """An event of a later tourney stops those who need it, and nobody else."""
    ledger.append(STREAM, [*ANSWERS, verdict(key("query"))])
    loosen(ledger.connection)
    ledger.connection.execute("UPDATE event SET data = x'7b7d' WHERE type = 'VerdictReceived'")

    tallies = up_to_date(ledger, [RESPONSES, OUTCOMES], kept.snapshots, ledger.head)

    assert [tally.of(STREAM) for tally in tallies] == [{"responses": 2, "tokens": 6}, {}]
    with pytest.raises(UnreadableEvent):
        up_to_date(ledger, [REPLIES], kept.snapshots, ledger.head)


def test_more_events_than_a_page_are_all_folded(ledger: Ledger, kept: Kept) -> None:
    """They are folded by the ten thousand, so that memory does not grow with the ledger."""
    ledger.append(STREAM, [verdict(key(str(n))) for n in range(10_001)])

    (tally,) = up_to_date(ledger, [REPLIES], kept.snapshots, ledger.head)

    assert tally.of(STREAM) == {"verdicts": 10_001}
