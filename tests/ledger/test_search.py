"""Finding events without reading all of them."""

from pathlib import Path

import pytest

from ledger.errors import CannotRead
from ledger.events.registry import Event
from ledger.recorded import StoredEvent
from ledger.search import newest, with_id
from ledger.storage.connection import open_for_reading
from ledger.store import Ledger
from tests.builders import STREAM, opened
from tests.ledger.disks import Disk
from tests.ledger.facts import N_FILED, verdicts


def append(ledger: Ledger, *events: Event) -> tuple[StoredEvent, ...]:
    """Append events and return how they are stored."""
    after = ledger.head.position
    ledger.append(STREAM, events)
    return tuple(ledger.rows(after=after))


def test_the_newest_events_come_in_order(ledger: Ledger) -> None:
    """A log shows its last lines, the newest at the bottom."""
    appended = append(ledger, *verdicts(5))

    found = newest(ledger, limit=2)

    assert found == appended[3:]


def test_no_limit_finds_the_whole_history(ledger: Ledger) -> None:
    """`--limit` is a choice, not a default that hides events."""
    appended = append(ledger, *verdicts(5))

    found = newest(ledger, limit=None)

    assert found == appended


def test_the_newest_up_to_a_position_are_found(ledger: Ledger) -> None:
    """As-of holds for the log as it holds for the standings."""
    appended = append(ledger, *verdicts(5))

    found = newest(ledger, until=3, limit=2)

    assert found == appended[1:3]


def test_the_newest_of_one_type_are_found(ledger: Ledger) -> None:
    """The limit counts events of the type asked for, not those between them."""
    ledger.append(STREAM, verdicts(1))
    openings = append(ledger, *opened()[:1])
    ledger.append(STREAM, verdicts(3, after=1))

    found = newest(ledger, event_type="TournamentOpened", limit=1)

    assert found == openings


@pytest.mark.parametrize("n_characters", [17, 31, 32])
def test_an_event_is_found_by_the_beginning_of_its_id(ledger: Ledger, n_characters: int) -> None:
    """Ids are long: users copy as much as tells them apart, in either case."""
    _, wanted, _ = append(ledger, *verdicts(3))

    found = with_id(ledger, wanted.event_id.hex()[:n_characters].upper())

    assert found == (wanted,)


@pytest.mark.parametrize("beginning", ["%", "_", "0%", "\\", "zz"])
def test_what_begins_no_id_finds_nothing(ledger: Ledger, beginning: str) -> None:
    """A wildcard of SQL's must not find every event."""
    ledger.append(STREAM, verdicts(3))

    found = with_id(ledger, beginning)

    assert found == ()


def test_what_is_found_is_on_the_disk_first(filed: Path) -> None:
    """What was shown of an event must not be all that is left of it after a power loss."""
    disk = Disk(lambda: None)

    with Ledger(open_for_reading(filed), filed, wal=disk) as ledger:
        found = with_id(ledger, "")

    assert len(found) == N_FILED
    assert disk.n_flushes == 1


def test_searching_a_damaged_file_is_reported(filed: Path) -> None:
    """As in reading: a sentence that names the file, not a traceback."""
    healthy = filed.read_bytes()
    filed.write_bytes(healthy[:16_384] + bytes(len(healthy) - 16_384))

    with Ledger.read_only(filed) as ledger, pytest.raises(CannotRead, match="malformed"):
        newest(ledger, until=N_FILED, limit=1)
