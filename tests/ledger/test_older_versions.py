"""A ledger that an earlier tourney wrote: read, audited and gone on with, never rewritten."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger.audit import audit
from ledger.errors import KeyConflict
from ledger.events.event import EVENTS, Event
from ledger.events.judging import VerdictReceived
from ledger.store import Ledger
from tests.batches import USED
from tests.builders import STREAM
from tests.ledger.hostile import hash_again, unguarded
from tests.ledger.make_goldens import GOLDENS

NAMES = (
    "EntrantRegistered",
    "ResponseGenerated",
    "JudgeQuerySubmitted",
    "VerdictReceived",
    "JudgeQueryFailed",
    "PairReconciled",
    "RatingsPublished",
)
OLD = {name: (GOLDENS / f"{name}.v1.json").read_bytes() for name in NAMES}


@pytest.fixture
def path(path: Path) -> Path:
    """Give a ledger of events in their first version."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, said())
    with unguarded(path) as connection:
        for type_, data in OLD.items():
            change = "UPDATE event SET schema_version = 1, data = ? WHERE type = ?"
            connection.execute(change, (data, type_))
        hash_again(connection)
    return path


def said() -> list[Event]:
    """Return what the events say, in today's words."""
    return [EVENTS.decode(type_, 1, data) for type_, data in OLD.items()]


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
    assert stored == [(1, data) for data in OLD.values()]


def test_other_content_under_an_older_key_is_refused(path: Path) -> None:
    """What a version added may say something that the old event did not."""
    (verdict,) = (each for each in said() if isinstance(each, VerdictReceived))

    with Ledger.open(path) as ledger, pytest.raises(KeyConflict):
        ledger.append(STREAM, [replace(verdict, usage=USED)])
