"""The base of every event and of the values inside events."""

from typing import ClassVar

import msgspec

from ledger.identity import Digest, Json, digest_of


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A frozen value inside an event; its fields are checked when it is read or appended.

    Values refer only to older values, so they form no cycles that a collector must look for.
    """

    @property
    def fields(self) -> dict[str, Json]:
        """The value as JSON says it."""
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return fields

    @property
    def content_digest(self) -> Digest:
        """Name the whole value, labels and paths included."""
        return digest_of(self.fields)


class Fact(Value, frozen=True):
    """Something that happened, in the past tense; a new shape has a new version and an upcast."""

    schema_version: ClassVar[int] = 1

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Name this fact among facts of its type in its stream: the same key is the same fact."""
        raise NotImplementedError


def type_name(fact: Fact | type[Fact]) -> str:
    """Return the string that a ledger keeps as an event's type; never a class path."""
    return fact.__name__ if isinstance(fact, type) else type(fact).__name__
