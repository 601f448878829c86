"""Events as recorded: with position, version, time and link, decoded or as stored."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self

from ledger.chain import LeafContent, is_tombstone, remaining_payload
from ledger.errors import UnreadableEvent
from ledger.events.registry import EVENTS, Event
from ledger.identity import Digest, StreamId

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Recorded(NamedTuple):
    """An event with its position, version, time and link."""

    position: int  # place in the ledger: 1, 2, 3 ...
    stream: StreamId
    version: int  # place in the stream: 1, 2, 3 ...
    recorded_us: int  # microseconds since 1970-01-01 UTC
    link: bytes  # the hash chain's value here, 32 bytes
    event: Event
    redacted: bool = False  # its texts were removed; REDACTED stands in their place

    @property
    def recorded_at(self) -> datetime:
        """When it was recorded, in UTC."""
        return moment(self.recorded_us)

    @property
    def chain(self) -> Digest:
        """The chain's value at this event, in hexadecimal: the hash of the history up to it."""
        return Digest(self.link.hex())


class Receipt(NamedTuple):
    """What an append returns for each event, once it is on the disk."""

    recorded: Recorded
    leaf: bytes  # names the event's content wherever it lies, 32 bytes
    is_new: bool  # False: it was there already, the same, and was not written again


def microseconds(at: datetime) -> int:
    """Convert a time to microseconds since 1970-01-01 UTC."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch_us: int) -> datetime:
    """Convert microseconds since 1970-01-01 to a time in UTC."""
    return _EPOCH + timedelta(microseconds=since_epoch_us)


class StoredEvent(NamedTuple):
    """A row of the event table, in the order of its columns."""

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

    @classmethod
    def of(cls, row: tuple[object, ...]) -> Self:
        """Return a row as it is read from a file that may be damaged.

        Raises:
            UnreadableEvent: A field is missing, or is of another type.
        """
        position, *_ = row
        if tuple(map(type, row)) != _TYPES:
            raise UnreadableEvent(position if isinstance(position, int) else 0, DAMAGED_ROW)
        return cls._make(row)

    @property
    def entry(self) -> LeafContent:
        """The fields that the leaf hashes."""
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
        """Return a decoded event with this row's position, version, time and link."""
        stream = StreamId(self.stream)
        redacted = is_tombstone(self.data)
        return Recorded(
            self.position, stream, self.version, self.recorded_us, self.chain, event, redacted
        )


_EARLIEST_US: Final = microseconds(datetime.min.replace(tzinfo=UTC))
_LATEST_US: Final = microseconds(datetime.max.replace(tzinfo=UTC))
_TYPES: Final = (int, bytes, str, int, str, int, int, bytes, bytes, bytes)
DAMAGED_ROW: Final = "its row is damaged: a field is missing or has the wrong type"


def decode_stored(
    position: int, recorded_us: object, type_: str, schema_version: int, data: object
) -> Event:
    """Decode a stored event, or what remains of it; in a damaged file, fields may have any type.

    Raises:
        UnreadableEvent: Its type, version, shape or time is unknown.
    """
    if not isinstance(recorded_us, int) or not isinstance(data, bytes):
        raise UnreadableEvent(position, DAMAGED_ROW)
    if not _EARLIEST_US <= recorded_us <= _LATEST_US:
        raise UnreadableEvent(position, f"its time is out of range: {recorded_us} us")
    try:
        payload, version = remaining_payload(data, schema_version)
        return EVENTS.decode(type_, version, payload)
    except LookupError as error:
        raise UnreadableEvent(position, str(error.args[0])) from error
    except ValueError as error:
        why = f"its data does not match {type_}: {error}"
        raise UnreadableEvent(position, why) from error
