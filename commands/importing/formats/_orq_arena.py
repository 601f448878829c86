"""orq-arena's battle log, of schema 2 or 3: one round a row, decided by a jury.

Each judge saw both orders and abstained if its verdicts disagreed; a row has the jury's verdict. A
round that is inconclusive, or void for lack of an answer, has no verdict.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.rows import BattleRow, Cells, InvalidFields, row_by_row, shorten
from ledger.events.imports import Winner

_SCHEMAS: Final = (2, 3)
_VERDICTS: Final[Mapping[str, Winner]] = {
    "A": "model_a",
    "B": "model_b",
    "tie": "tie",
    "inconclusive": "no verdict",
}


@row_by_row
def read(cells: Cells) -> Iterator[BattleRow]:
    if cells.fields.get("schema_version") not in _SCHEMAS:
        said = shorten(cells.fields.get("schema_version"))
        raise InvalidFields(f"schema_version is {said}, but must be 2 or 3")
    verdict = cells.mapped_value("majority_verdict", _VERDICTS)
    _require_agreement(cells, verdict)
    yield BattleRow(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=verdict,
        pref=None,
        question_id=cells.text("prompt_hash"),
        source="llm-judge",
        judge_model=_jury(cells),
    )


def _require_agreement(cells: Cells, verdict: Winner) -> None:
    """Check the verdict against the field `winner`, which names an entrant."""
    named: Mapping[Winner, tuple[object, ...]] = {
        "model_a": (cells.fields.get("model_a"),),
        "model_b": (cells.fields.get("model_b"),),
        "tie": ("tie",),
        "no verdict": ("inconclusive", "void"),
    }
    winner = cells.fields.get("winner")
    if winner not in named[verdict]:
        said = shorten(cells.fields["majority_verdict"])
        raise InvalidFields(f"winner is {shorten(winner)}, but majority_verdict is {said}")


def _jury(cells: Cells) -> str | None:
    """Return the judges as one name, or None if there are none."""
    votes = cells.structured("judge_votes", list[dict[str, object]])
    return "+".join(Cells(vote).text("model") for vote in votes) or None
