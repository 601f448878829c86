"""Where a ledger stands, as a table."""

from pathlib import Path

import pytest

from commands.cli.project.status import status_table
from ledger.events.registry import Event
from ledger.storage.files import wal_of
from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM, verdicts
from tests.support.builders.worlds import cup, history


def test_what_lies_in_the_log_is_counted(tmp_path: Path) -> None:
    """While a run goes on most of it lies there, and `0.0 MB` would look like nothing at all."""
    path = tmp_path / "run.ledger"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(3))

        table = status_table(ledger, NOON)

        assert wal_of(path).stat().st_size > 0
        assert table.facts["n_bytes"] == path.stat().st_size + wal_of(path).stat().st_size


@pytest.mark.parametrize(
    ("events", "is_told"), [(history(cup(), "a", "tie"), True), (verdicts(3), False)]
)
def test_outcomes_are_said_to_be_all_that_are_on_record(
    ledger: Ledger, events: tuple[Event, ...], is_told: bool
) -> None:
    """After the instructions changed there are more outcomes than pairs."""
    ledger.append(STREAM, events)

    table = status_table(ledger, NOON)

    assert table.title == "On record, all judges and settings together"
    assert (
        any(
            "`tourney status --tournament NAME` counts what is current" in each
            for each in table.notes
        )
        == is_told
    )
