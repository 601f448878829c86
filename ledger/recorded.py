"""An event with its place: what the ledger hands back."""

from dataclasses import dataclass
from datetime import datetime

from ledger.events.registry import Event
from ledger.identity import Digest, StreamId


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event and what the ledger knows of its recording."""

    position: int  # place in the ledger: 1, 2, 3 ...
    stream: StreamId
    version: int  # place in the stream: 1, 2, 3 ...
    event_id: str  # 32 hexadecimal characters: the idempotency key
    recorded_at: datetime  # UTC
    event: Event
    chain: Digest  # the hash chain's value here: names the whole history up to this event
