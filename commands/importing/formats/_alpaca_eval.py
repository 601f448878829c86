"""AlpacaEval's annotations.json: preferences of an annotator between two outputs.

A preference runs from 1 (`generator_1`) to 2 (`generator_2`), 3/2 for a tie: one more than the
probability that the second is better. The first, usually the reference, becomes model_a. The order
in which the annotator saw the two was random, and is not in the file. The dataset that a prompt
comes from becomes its category; of the outputs, the number of characters is kept.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from commands.importing.formats.rows import Cells, InvalidFields, row_by_row
from ledger.events.imports import ImportedBattle, Winner

_FIRST, _SECOND = 1, 2  # the certain preferences
_TIE_ONCE: Final = 0  # a tie, in files from before preferences were weighted
_EVEN: Final = 0.5
_N_DECIMALS: Final = 15  # of a preference; further ones come from the subtraction
_N_HEX: Final = (
    16  # of an id: AlpacaEval names prompts by their texts; 64 bits tell a million apart
)


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    pref = _pref(cells)
    yield ImportedBattle(
        model_a=cells.text("generator_1"),
        model_b=cells.text("generator_2"),
        winner=_winner(pref),
        pref=pref,
        question_id=sha256(cells.text("instruction").encode()).hexdigest()[:_N_HEX],
        source="llm-judge",
        judge_model=cells.optional_text("annotator"),
        categories=cells.labels("dataset"),
        length_a=cells.length("output_1"),
        length_b=cells.length("output_2"),
    )


def _pref(cells: Cells) -> float | None:
    """Return the probability that the second is better, or None if the annotator failed."""
    if "preference" not in cells.fields:
        raise InvalidFields("preference is missing; it may be null")
    preference = cells.optional_number("preference")
    if preference is None:
        return None
    if preference == _TIE_ONCE:
        return _EVEN
    if not _FIRST <= preference <= _SECOND:
        raise InvalidFields(f"preference is {preference!r}, but must be from 1 to 2")
    return round(preference - _FIRST, _N_DECIMALS)


def _winner(pref: float | None) -> Winner:
    if pref is None:
        return "no verdict"
    if pref == _EVEN:
        return "tie"
    return "model_a" if pref < _EVEN else "model_b"
