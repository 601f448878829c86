"""What happened, as rows."""

from commands.tables.history import event_fields, log_table
from tests.builders import NOON, STREAM, opened, prompt, recorded

EVENTS = recorded(opened(prompts=[prompt("p1")]))


def test_an_event_is_shown_whole_with_its_place() -> None:
    """`tourney show` leaves nothing out: what is hashed can be seen."""
    event = EVENTS[1]

    fields = event_fields(event)

    assert (fields["position"], fields["stream"], fields["version"]) == (2, STREAM, 2)
    assert (fields["event_id"], fields["chain"]) == (event.event_id, event.chain)
    assert fields["event"] == event.event.model_dump(mode="json")


def test_a_log_shows_enough_of_a_digest_to_name_it() -> None:
    """Twelve characters are typed into `tourney show`; the whole id is in the data."""
    rows = log_table(EVENTS).rows

    digest = prompt("p1").content_digest
    assert rows[1]["key"] == f"p1 {digest[:12]}"
    assert rows[1]["event_id"] == EVENTS[1].event_id
    assert rows[0]["recorded_at"] == NOON.isoformat(timespec="seconds")
