"""Where a ledger stands, as a table."""

from pathlib import Path

from commands.cli.tables.status import status_table
from ledger.storage.wal import wal_of
from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM, verdicts


def test_what_lies_in_the_log_is_counted(tmp_path: Path) -> None:
    """While a run goes on most of it lies there, and `0.0 MB` would look like nothing at all."""
    path = tmp_path / "run.ledger"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(3))

        table = status_table(ledger, {}, (), {}, NOON)

        assert wal_of(path).stat().st_size > 0
        assert table.facts["n_bytes"] == path.stat().st_size + wal_of(path).stat().st_size
