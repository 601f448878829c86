"""A ledger that an earlier tourney wrote: read, audited and gone on with, never rewritten."""

from pathlib import Path

import pytest

from ledger.audit import audit
from ledger.errors import KeyConflict
from ledger.events.registry import EVENTS, Event, Registry
from ledger.events.values import Fact
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.hostile import hash_again, unguarded
from tests.ledger.weighed import STEPS, Weighed

OLD = {
    "salt": (1, b'{"name":"salt","kilograms":0.5}'),
    "flour": (2, b'{"what":"flour","kilograms":1.5}'),
}


@pytest.fixture(autouse=True)
def _event_of_three_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program know one event more."""
    known = Registry[Fact]((*EVENTS.types.values(), Weighed), STEPS)
    monkeypatch.setattr(EVENTS, "types", known.types)
    monkeypatch.setattr(EVENTS, "decoders", known.decoders)


@pytest.fixture
def path(path: Path) -> Path:
    """Give a ledger of events in their first and second version."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, said())
    with unguarded(path) as connection:
        for position, (version, data) in enumerate(OLD.values(), start=1):
            change = "UPDATE event SET schema_version = ?, data = ? WHERE position = ?"
            connection.execute(change, (version, data, position))
        hash_again(connection)
    return path


def weighed(what: str, grams: float) -> Event:
    """Return the event as the program of the tests knows it."""
    return Weighed(what, grams)  # type: ignore[return-value]  # no union names it


def said() -> list[Event]:
    """Return what the events say, in today's words."""
    return [weighed("salt", 500.0), weighed("flour", 1_500.0)]


def test_an_older_ledger_is_sound_and_readable(path: Path) -> None:
    """An upcast is made while reading; the hashes are those of the bytes as they were written."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        assert [each.event for each in ledger.read()] == said()


def test_a_fact_recorded_in_older_words_is_not_recorded_again(path: Path) -> None:
    """A rerun under a new tourney must find what the old one paid for."""
    with Ledger.open(path) as ledger:
        receipts = ledger.append(STREAM, said())

        stored = [(row.schema_version, row.data) for row in ledger.rows()]

    assert not any(receipt.is_new for receipt in receipts)
    assert stored == [*OLD.values()]


def test_other_content_under_an_older_key_is_refused(path: Path) -> None:
    """The same thing weighs something else today: one of the two is wrong."""
    with Ledger.open(path) as ledger, pytest.raises(KeyConflict):
        ledger.append(STREAM, [weighed("salt", 501.0)])
