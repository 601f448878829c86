"""The base of every event and of the values inside events."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from ledger.identity import Digest, digest_of


class Value(BaseModel):
    """A frozen value inside an event: unknown fields, NaN and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @property
    def content_digest(self) -> Digest:
        """Name the whole value, labels and paths included."""
        return digest_of(self.model_dump(mode="json"))


class Fact(Value):
    """Something that happened, in the past tense; its type is a string, never a class path."""

    schema_version: ClassVar[int] = 1

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Name this fact among facts of its type in its stream: the same key is the same fact."""
        raise NotImplementedError


def type_name(fact: Fact | type[Fact]) -> str:
    """Return the string that a ledger keeps as an event's type."""
    fields: Any = fact.model_fields if isinstance(fact, type) else type(fact).model_fields
    return str(fields["type"].default)
