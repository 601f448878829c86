"""What happened, as rows."""

from commands.tables.history import event_fields, log_table
from tests.builders import STREAM, opened, prompt, recorded

EVENTS = recorded(opened(prompts=[prompt("p1")]))


def test_an_event_is_shown_whole_with_its_place() -> None:
    """`tourney show` leaves nothing out: what is hashed can be seen."""
    event = EVENTS[1]

    fields = event_fields(event)

    assert (fields["position"], fields["stream"], fields["version"]) == (2, STREAM, 2)
    assert (fields["event_id"], fields["chain"]) == (event.event_id, event.chain)
    assert fields["event"] == event.event.model_dump(mode="json")


def test_a_log_keeps_keys_and_times_whole() -> None:
    """Tables round, data never does: a time shown can be given to --as-of again."""
    rows = log_table(EVENTS).rows

    digest = prompt("p1").content_digest
    assert rows[1]["key"] == f"p1 {digest}"
    assert rows[1]["event_id"] == EVENTS[1].event_id
    assert rows[0]["recorded_at"] == EVENTS[0].recorded_at.isoformat()
