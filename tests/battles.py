"""Builders of battles that others held."""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.events.imports import BattlesImported, Column, coded
from tests.builders import key


def battles(
    a: Sequence[str] = ("x",), b: Sequence[str] = ("y",), **fields: object
) -> BattlesImported:
    """Return battles of a against b, in their order; without more fields people preferred a."""
    entrants = tuple(dict.fromkeys((*a, *b)))
    event = BattlesImported(
        file_digest=key("file"),
        format="plain",
        mapping_version=1,
        chunk=1,
        n_skipped=0,
        entrants=entrants,
        a=coded(a, entrants),
        b=coded(b, entrants),
        winners=Column(("model_a",)),
        prefs=Column((None,)),
        prompts=Column((None,)),
        sources=Column(("human",)),
        judges=Column((None,)),
        weights=Column((1.0,)),
    )
    return replace(event, **fields)
