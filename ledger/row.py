"""One row of the ledger's table, and how it becomes a recorded event."""

from typing import NamedTuple

from ledger.chain import Entry
from ledger.errors import UnreadableEvent
from ledger.events.event import EVENTS, Event
from ledger.identity import StreamId
from ledger.recorded import EARLIEST_US, LATEST_US, Recorded


class Row(NamedTuple):
    """An event as stored, in the order of the table's columns."""

    position: int
    event_id: bytes
    stream: str
    version: int
    type: str
    schema_version: int
    recorded_us: int  # microseconds since 1970-01-01 UTC
    data: bytes
    leaf: bytes
    chain: bytes

    @property
    def entry(self) -> Entry:
        """What of the row its leaf is the hash of."""
        return Entry(
            self.event_id,
            self.stream.encode(),
            self.type.encode(),
            self.schema_version,
            self.recorded_us,
            self.data,
        )

    def recorded(self) -> Recorded:
        """Decode the event.

        Raises:
            UnreadableEvent: Its type, version, shape or time is unknown.
        """
        return self.place(
            decoded(self.position, self.recorded_us, self.type, self.schema_version, self.data)
        )

    def place(self, event: Event) -> Recorded:
        """Put an event that is in hand at this row's place."""
        stream = StreamId(self.stream)
        return Recorded(self.position, stream, self.version, self.recorded_us, self.chain, event)


def decoded(
    position: int, recorded_us: object, type_: str, schema_version: int, data: object
) -> Event:
    """Return a stored event; of a damaged file, fields may be of any type.

    Raises:
        UnreadableEvent: Its type, version, shape or time is unknown.
    """
    if not isinstance(recorded_us, int) or not isinstance(data, bytes):
        raise UnreadableEvent(position, "its row is damaged: a field is of another type")
    if not EARLIEST_US <= recorded_us <= LATEST_US:
        raise UnreadableEvent(position, f"its time is out of range: {recorded_us} us")
    try:
        return EVENTS.decode(type_, schema_version, data)
    except LookupError as error:
        raise UnreadableEvent(position, str(error.args[0])) from error
    except ValueError as error:
        why = f"it does not have the shape of {type_}: {error}"
        raise UnreadableEvent(position, why) from error
