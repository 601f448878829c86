"""All event types and versions: encode events for storage, and decode what was ever stored."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from ledger.errors import BrokenUpcasts, InvalidEvent
from ledger.events import (
    evaluations,
    imports,
    judging,
    ratings,
    registration,
    requests,
    responses,
)
from ledger.events.values import EventRedacted, Fact, type_name
from ledger.identity import Fields

AnyFact = TypeVar("AnyFact", bound=Fact)
Upcast: TypeAlias = Callable[[Fields], Fields]
"""Says an event of one version in the words of the next; pure, and never written back."""

_encode: Final = msgspec.json.Encoder().encode


class Registry(Generic[AnyFact]):
    """All event types, with an upcast for every older version."""

    def __init__(
        self, types: Iterable[type[AnyFact]], upcasts: Mapping[tuple[str, int], Upcast]
    ) -> None:
        """Check that every older version of every type can be read.

        Args:
            types: The current event types.
            upcasts: By type and version, the step from that version to the next.

        Raises:
            BrokenUpcasts: An upcast is missing, or has no use.
        """
        self.types: Final = {type_name(fact): fact for fact in types}
        expected = {
            (name, version)
            for name, fact in self.types.items()
            for version in range(1, fact.schema_version)
        }
        if upcasts.keys() != expected:
            raise BrokenUpcasts(missing=expected - upcasts.keys(), extra=upcasts.keys() - expected)
        self._upcasts = upcasts
        self.decoders: Final[Mapping[tuple[str, int], Callable[[bytes], AnyFact]]] = {
            **{
                (name, version): partial(self._from_older, name, version)
                for name, version in upcasts
            },
            **{
                (name, fact.schema_version): msgspec.json.Decoder(fact).decode
                for name, fact in self.types.items()
            },
        }

    def encode(self, event: AnyFact) -> bytes:
        """Encode an event as the JSON that is stored and hashed.

        Raises:
            InvalidEvent: It could not be decoded to the same event: a field is out of its limits or
                has another type, or a number is not finite.
        """
        try:
            back = self.decode(type_name(event), event.schema_version, _encode(event))
        except (TypeError, ValueError) as error:
            raise InvalidEvent(type_name(event), str(error)) from error
        if back != event:
            raise InvalidEvent(type_name(event), f"{event!r} would be read back as {back!r}")
        return _encode(back)  # 16 where a float belongs is spelt 16.0, as it will always be

    def decode(self, type_: str, schema_version: int, data: bytes) -> AnyFact:
        """Decode a stored event.

        Raises:
            LookupError: The type, or this version of it, is unknown.
            ValueError: The bytes do not match the type.
        """
        decoder = self.decoders.get((type_, schema_version))
        if decoder is None:
            raise LookupError(self._what_is_needed(type_, schema_version))
        return decoder(data)

    def _from_older(self, name: str, version: int, data: bytes) -> AnyFact:
        fields: Any = msgspec.json.decode(data)
        event_type = self.types[name]
        try:
            for step in range(version, event_type.schema_version):
                fields = self._upcasts[name, step](fields)
        except (LookupError, TypeError) as error:
            raise ValueError(f"version {version} lacks what its upcast needs: {error}") from error
        return msgspec.convert(fields, event_type)

    def _what_is_needed(self, name: str, version: int) -> str:
        event_type = self.types.get(name)
        if event_type is None:
            return f"unknown event type {name!r}; a newer tourney may know it"
        latest = event_type.schema_version
        known = "1" if latest == 1 else f"1 to {latest}"
        return f"unknown version {version} of {name} (known: {known}); a newer tourney may know it"


Event: TypeAlias = (
    registration.TournamentOpened
    | registration.PromptRegistered
    | registration.RubricRegistered
    | registration.EntrantRegistered
    | registration.JudgeRegistered
    | responses.ResponseGenerated
    | responses.ResponseFailed
    | requests.RequestsSubmitted
    | requests.RequestsSettled
    | requests.ParameterRefused
    | judging.JudgeBatchPlanned
    | judging.JudgeBatchSubmitted
    | judging.JudgeBatchNotCreated
    | judging.JudgeBatchEnded
    | judging.JudgeQuerySubmitted
    | judging.VerdictReceived
    | judging.ScoreQuerySubmitted
    | judging.ScoreReceived
    | judging.ScoreShared
    | judging.JudgeQueryFailed
    | judging.JudgeQueryReopened
    | judging.LookTaken
    | judging.PairReconciled
    | ratings.RatingsPublished
    | imports.LedgerMerged
    | imports.BattlesImported
    | imports.RatingsImported
    | evaluations.ItemRegistered
    | evaluations.EvaluationPlanned
    | evaluations.SampleObserved
    | evaluations.SampleUnscorable
    | evaluations.EvaluationCompleted
    | EventRedacted
)


def _rated_by_outcomes(fields: Fields) -> Fields:
    """Say of a publication of version 1 that it rated outcomes, as all did."""
    publication: Any = fields["publication"]
    terms = {**publication["terms"], "rated_by": "outcomes"}
    return {**fields, "publication": {**publication, "terms": terms}}


def _of_earlier_arithmetic(fields: Fields) -> Fields:
    """Say of a publication of version 2 by which arithmetic it was computed."""
    publication: Any = fields["publication"]
    terms = {**publication["terms"], "arithmetic": 1}
    return {**fields, "publication": {**publication, "terms": terms}}


UPCASTS: Final[Mapping[tuple[str, int], Upcast]] = {
    ("RatingsPublished", 1): _rated_by_outcomes,
    ("RatingsPublished", 2): _of_earlier_arithmetic,
}

EVENTS: Final[Registry[Event]] = Registry(Event.__args__, UPCASTS)
