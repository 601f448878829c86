"""Builders of battles that others held."""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.events.imports import BattlesImported, CodedColumn, encode_cells
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
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=CodedColumn(("model_a",)),
        prefs=CodedColumn((None,)),
        prompts=CodedColumn((None,)),
        sources=CodedColumn(("human",)),
        judges=CodedColumn((None,)),
        weights=CodedColumn((1.0,)),
    )
    return replace(event, **fields)
