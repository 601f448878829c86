"""All events by name: how a stored type and version becomes an object again."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from ledger.events.fact import Fact, type_name
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.responses import ResponseFailed, ResponseGenerated

Event: TypeAlias = (
    TournamentOpened
    | PromptRegistered
    | RubricRegistered
    | EntrantRegistered
    | JudgeRegistered
    | ResponseGenerated
    | ResponseFailed
    | JudgeQuerySubmitted
    | VerdictReceived
    | JudgeQueryFailed
    | PairReconciled
    | RatingsPublished
)

EVENT_TYPES: Final[Mapping[str, type[Fact]]] = MappingProxyType(
    {type_name(event): event for event in Event.__args__}
)


def encode(event: Event) -> bytes:
    """Return the JSON that is stored and hashed, verbatim, for ever."""
    return event.model_dump_json(exclude={"type"}).encode()


def decode(type_: str, schema_version: int, data: bytes) -> Event:
    """Return the event that stored bytes say.

    Raises:
        LookupError: The type, or this version of it, is unknown here.
        ValueError: The bytes do not fit the type.
    """
    event_type = EVENT_TYPES.get(type_)
    if event_type is None:
        raise LookupError(f"no event type {type_!r}; a later tourney may know it")
    if schema_version != event_type.schema_version:
        raise LookupError(
            f"{type_} version {schema_version}, known here: {event_type.schema_version};"
            " a later tourney may know it"
        )
    return event_type.model_validate_json(data)  # type: ignore[return-value]  # the registry holds Events only
