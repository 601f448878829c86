"""Base classes of events and their values, types of shared fields, and the event of a redaction."""

from datetime import datetime
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta

from ledger.identity import Digest, Json, digest_of


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A frozen value inside an event; its fields are checked when it is read or appended.

    Values refer only to older values, so they form no cycles that a collector must look for.
    """

    @property
    def fields(self) -> dict[str, Json]:
        """The value as JSON."""
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return fields

    @property
    def content_digest(self) -> Digest:
        """Digest of the whole value, labels and paths included."""
        return digest_of(self.fields)


class Fact(Value, frozen=True):
    """An event, whose version says how to read what is stored.

    A shape that reads all that was stored before keeps its version: a new field has a default, a
    type is wider. Any other shape has a new version, and an upcast. An older tourney stops at what
    it does not know, of either kind, and changes nothing.
    """

    schema_version: ClassVar[int] = 1
    key_fields: ClassVar[tuple[str, ...]]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Identify this event within its type and stream: the same key is the same event."""
        return tuple([str(getattr(self, name)) for name in self.key_fields])


def type_name(fact: Fact | type[Fact]) -> str:
    """Return an event's type as stored; never a class path."""
    return fact.__name__ if isinstance(fact, type) else type(fact).__name__


REDACTED: Final = "[redacted]"
"""What stands in the place of a text that was removed."""

MAX_POINTS: Final = 1e6  # of Elo: wide of all that is rated, and formulas stay finite
MIN_SPREAD: Final = 0.01  # Elo points: intervals of less are lost in rounding
MIN_LEVEL: Final = 0.001
MAX_LEVEL: Final = 0.999999
MAX_REPEATS: Final = 1_000_000  # hours, and not for ever

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1)]
Seed32: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Duration: TypeAlias = Annotated[float, Meta(ge=0)]  # seconds
Probability: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Level: TypeAlias = Annotated[float, Meta(ge=MIN_LEVEL, le=MAX_LEVEL)]  # of confidence
Step: TypeAlias = Annotated[float, Meta(gt=0, le=MAX_POINTS)]  # Elo points at a match
Spread: TypeAlias = Annotated[float, Meta(ge=MIN_SPREAD, le=MAX_POINTS)]  # Elo points
Rating: TypeAlias = Annotated[float, Meta(ge=-MAX_POINTS, le=MAX_POINTS)]
Repeats: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_REPEATS)]
RepeatsIfAny: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_REPEATS)]
FilledText: TypeAlias = Annotated[str, Meta(min_length=1)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0)]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]


class EventRedacted(Fact, frozen=True, kw_only=True):
    """The texts of an earlier event were removed for good.

    It names the event by its id: positions change when ledgers are merged.
    """

    key_fields = ("event_id",)  # an event is redacted once
    event_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    digest: Digest  # of the payload that was removed
    tombstone: Digest  # of what stands in its place
    why: FilledText
