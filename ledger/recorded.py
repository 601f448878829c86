"""An event with its place: what projections fold."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ledger.events.event import Event
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
