"""Base classes of events and their values, shared field types, token usage and prices."""

from datetime import datetime
from operator import add
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import astuple

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
    """An event; a new shape has a new version and an upcast."""

    schema_version: ClassVar[int] = 1
    key_fields: ClassVar[tuple[str, ...]]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Identify this event within its type and stream: the same key is the same event."""
        return tuple([str(getattr(self, name)) for name in self.key_fields])


def type_name(fact: Fact | type[Fact]) -> str:
    """Return an event's type as stored; never a class path."""
    return fact.__name__ if isinstance(fact, type) else type(fact).__name__


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


class Usage(Value, frozen=True):
    """A reply's token counts by the provider; cached tokens are not counted as input again."""

    n_input: Count
    n_output: Count
    n_cache_write_5m: Count = 0
    n_cache_write_1h: Count = 0
    n_cache_read: Count = 0

    @property
    def n_cached(self) -> int:
        """Tokens written to the cache or read from it."""
        return self.n_cache_write_5m + self.n_cache_write_1h + self.n_cache_read

    @property
    def n_prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.n_input + self.n_cached

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of both counts."""
        return Usage(*map(add, astuple(self), astuple(other)))


class Price(Value, frozen=True):
    """US dollars per million tokens, at the time a reply was read."""

    input: Dollars
    output: Dollars
    cache_write_5m: Dollars
    cache_write_1h: Dollars
    cache_read: Dollars
    table: str  # which table it is from, and of what date


_PER: Final = 1_000_000  # prices are for a million tokens


def cost_usd(usage: Usage, price: Price) -> float:
    """Return the cost of a reply in US dollars."""
    millionths = (
        usage.n_input * price.input
        + usage.n_output * price.output
        + usage.n_cache_write_5m * price.cache_write_5m
        + usage.n_cache_write_1h * price.cache_write_1h
        + usage.n_cache_read * price.cache_read
    )
    return millionths / _PER
