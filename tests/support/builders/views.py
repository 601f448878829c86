"""What the pages show of a tournament, without a file or a socket."""

from pathlib import Path

from commands.viewer.live import LiveView, live_reading_of, view_of
from ledger.chain import Head
from ledger.events.registry import Event
from projections.fold import fold
from tests.support.builders.events import STREAM, key, recorded


def viewed(*events: Event) -> LiveView:
    """Return what the pages show after events."""
    reading = fold(live_reading_of(STREAM), recorded(events))
    return view_of(reading, Head(len(events), key("head")), Path("tournament.db"))
