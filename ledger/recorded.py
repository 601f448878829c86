"""An event with its place: what projections fold."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ledger.chain import LeafContent
from ledger.errors import UnreadableEvent
from ledger.events.registry import EVENTS, Event
from ledger.identity import Digest, StreamId

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_US: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
LATEST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class Recorded(NamedTuple):
    """An event and what the ledger knows of its recording."""

    position: int  # place in the ledger: 1, 2, 3 ...
    stream: StreamId
    version: int  # place in the stream: 1, 2, 3 ...
    recorded_us: int  # microseconds since 1970-01-01 UTC
    link: bytes  # the hash chain's value here, 32 bytes
    event: Event

    @property
    def recorded_at(self) -> datetime:
        """When, in UTC."""
        return moment(self.recorded_us)

    @property
    def chain(self) -> Digest:
        """The chain's value in hexadecimal: names the whole history up to this event."""
        return Digest(self.link.hex())


class Receipt(NamedTuple):
    """What an append gives back for each event: it is on the disk, at this place."""

    recorded: Recorded
    leaf: bytes  # names the event's content wherever it lies, 32 bytes
    is_new: bool  # False: it was there already, the same, and was not written again


def microseconds(at: datetime) -> int:
    """Return the time since 1970-01-01 UTC in whole microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch_us: int) -> datetime:
    """Return the UTC time of a count of microseconds."""
    return _EPOCH + timedelta(microseconds=since_epoch_us)


class StoredEvent(NamedTuple):
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
    def entry(self) -> LeafContent:
        """What of the row its leaf is the hash of."""
        return LeafContent(
            self.event_id,
            self.stream.encode(),
            self.type.encode(),
            self.schema_version,
            self.recorded_us,
            self.data,
        )

    def decode(self) -> Recorded:
        """Decode the event.

        Raises:
            UnreadableEvent: Its type, version, shape or time is unknown.
        """
        return self.record_of(
            decode_stored(
                self.position, self.recorded_us, self.type, self.schema_version, self.data
            )
        )

    def record_of(self, event: Event) -> Recorded:
        """Put an event that is in hand at this row's place."""
        stream = StreamId(self.stream)
        return Recorded(self.position, stream, self.version, self.recorded_us, self.chain, event)


def decode_stored(
    position: int, recorded_us: object, type_: str, schema_version: int, data: object
) -> Event:
    """Return a stored event; of a damaged file, fields may be of any type.

    Raises:
        UnreadableEvent: Its type, version, shape or time is unknown.
    """
    if not isinstance(recorded_us, int) or not isinstance(data, bytes):
        raise UnreadableEvent(position, "its row is damaged: a field has the wrong type")
    if not EARLIEST_US <= recorded_us <= LATEST_US:
        raise UnreadableEvent(position, f"its time is out of range: {recorded_us} us")
    try:
        return EVENTS.decode(type_, schema_version, data)
    except LookupError as error:
        raise UnreadableEvent(position, str(error.args[0])) from error
    except ValueError as error:
        why = f"its data does not match {type_}: {error}"
        raise UnreadableEvent(position, why) from error
