"""What happened, as rows."""

import pytest

from commands.cli.audit import event_fields, log_table
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from tests.support.builders.events import STREAM, opened, prompt


@pytest.fixture
def opening(ledger: Ledger) -> tuple[StoredEvent, ...]:
    """Give the events of an opening as they are stored."""
    ledger.append(STREAM, opened(prompts=[prompt("p1")]))
    return tuple(ledger.rows())


def test_an_event_is_shown_whole_with_its_place(opening: tuple[StoredEvent, ...]) -> None:
    """`tourney log ID` leaves nothing out: what is hashed can be seen."""
    row = opening[1]

    fields = event_fields(row)

    assert (fields["position"], fields["stream"], fields["version"]) == (2, STREAM, 2)
    assert (fields["event_id"], fields["chain"]) == (row.event_id.hex(), row.chain.hex())
    assert fields["event"] == {"type": "PromptRegistered", **row.decode().event.fields}


def test_a_log_keeps_keys_and_times_whole(opening: tuple[StoredEvent, ...]) -> None:
    """Tables round, data never does: a time shown can be given to --as-of again."""
    rows = log_table(opening).rows

    digest = prompt("p1").content_digest
    assert rows[1]["key"] == f"p1 {digest}"
    assert rows[1]["event_id"] == opening[1].event_id.hex()
    assert rows[0]["recorded_at"] == opening[0].decode().recorded_at.isoformat()
    assert log_table(()).notes == ("no events",)  # an empty screen looks like a command that failed
