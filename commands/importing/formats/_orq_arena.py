"""orq-arena's battle log, of schema 2 or 3: one round a row, decided by a jury.

Each judge saw both orders and abstained if its verdicts disagreed; a row has the jury's verdict. A
round that is inconclusive, or void for lack of an answer, has no verdict. The votes of the judges
are kept, so that their agreement can be computed; of the answers, the number of characters.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.rows import Cells, InvalidFields, row_by_row, shorten
from ledger.events.imports import ImportedBattle, JurorSaid, JurorVote, Winner

_SCHEMAS: Final = (2, 3)
_VERDICTS: Final[Mapping[str, Winner]] = {
    "A": "model_a",
    "B": "model_b",
    "tie": "tie",
    "inconclusive": "no verdict",
}


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    if cells.fields.get("schema_version") not in _SCHEMAS:
        said = shorten(cells.fields.get("schema_version"))
        raise InvalidFields(f"schema_version is {said}, but must be 2 or 3")
    verdict = cells.mapped_value("majority_verdict", _VERDICTS)
    _require_agreement(cells, verdict)
    votes = _votes(cells)
    yield ImportedBattle(
        model_a=cells.text("model_a"),
        model_b=cells.text("model_b"),
        winner=verdict,
        pref=None,
        question_id=cells.text("prompt_hash"),
        source="llm-judge",
        judge_model="+".join(vote.judge for vote in votes) or None,
        votes=votes,
        categories=cells.labels("prompt_category"),
        length_a=cells.length("response_a"),
        length_b=cells.length("response_b"),
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


def _votes(cells: Cells) -> tuple[JurorVote, ...]:
    """Return what each judge said; one that failed, or abstained, has no verdict."""
    given = [Cells(vote) for vote in cells.structured("judge_votes", list[dict[str, object]])]
    return tuple(JurorVote(vote.text("model"), _said(vote)) for vote in given)


def _said(vote: Cells) -> JurorSaid:
    if vote.fields.get("flipped") is True:
        return "inconsistent"
    return "no verdict" if vote.lacks("vote") else vote.mapped_value("vote", _VERDICTS)
