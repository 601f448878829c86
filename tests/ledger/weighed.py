"""An event that had other shapes once; the program itself has none such."""

from typing import ClassVar

from ledger.events.registry import Fields, Upcast
from ledger.events.values import Fact


class Weighed(Fact, frozen=True):
    """Something was put on the scales; its third version."""

    schema_version: ClassVar[int] = 3

    what: str
    grams: float

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Each thing is weighed once."""
        return (self.what,)


def named(fields: Fields) -> Fields:
    """Say version 1 in the words of version 2, where `name` is called `what`."""
    return {"what": fields["name"], "kilograms": fields["kilograms"]}


def in_grams(fields: Fields) -> Fields:
    """Say version 2 in the words of version 3, which weighs in grams."""
    kilograms = fields["kilograms"]
    assert isinstance(kilograms, float)
    return {"what": fields["what"], "grams": kilograms * 1_000}


STEPS: dict[tuple[str, int], Upcast] = {("Weighed", 1): named, ("Weighed", 2): in_grams}
