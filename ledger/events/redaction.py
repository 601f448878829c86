"""The event of a redaction."""

from typing import Annotated

from msgspec import Meta

from ledger.events.values import Fact, FilledText
from ledger.identity import Digest


class EventRedacted(Fact, frozen=True, kw_only=True):
    """The texts of an earlier event were removed for good.

    It names the event by its id: positions change when ledgers are merged.
    """

    key_fields = ("event_id",)  # an event is redacted once
    event_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    digest: Digest  # of the payload that was removed
    tombstone: Digest  # of what stands in its place
    why: FilledText
