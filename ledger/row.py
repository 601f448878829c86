"""One row of the ledger's table, and how it becomes a recorded event."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pydantic import ValidationError

from ledger.chain import Entry
from ledger.errors import UnreadableEvent
from ledger.events.registry import Event, decode
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
            self.event_id, self.stream, self.type, self.schema_version, self.recorded_us, self.data
        )

    def recorded(self) -> Recorded:
        """Decode the event.

        Raises:
            UnreadableEvent: Its type, version, shape or time is unknown.
        """
        try:
            return self.place(decode(self.type, self.schema_version, self.data))
        except LookupError as error:
            raise UnreadableEvent(self.position, str(error.args[0])) from error
        except ValidationError as error:
            why = f"it does not have the shape of {self.type}: {error}"
            raise UnreadableEvent(self.position, why) from error
        except OverflowError as error:
            why = f"its time is out of range: {self.recorded_us} us"
            raise UnreadableEvent(self.position, why) from error

    def place(self, event: Event) -> Recorded:
        """Put an event that is in hand at this row's place."""
        return Recorded(
            position=self.position,
            stream=StreamId(self.stream),
            version=self.version,
            event_id=self.event_id.hex(),
            recorded_at=moment(self.recorded_us),
            event=event,
            chain=Digest(self.chain.hex()),
        )


def microseconds(at: datetime) -> int:
    """Return the time since 1970-01-01 UTC in whole microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch_us: int) -> datetime:
    """Return the UTC time of a count of microseconds."""
    return _EPOCH + timedelta(microseconds=since_epoch_us)
