"""orq-arena's battle log, of schema 2 or 3: one round a row, decided by a jury.

Each judge saw both orders and abstained if its verdicts disagreed; a row has the jury's verdict. A
round that is inconclusive, or void for lack of an answer, has no verdict.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from commands.importing.formats.rows import (
    BattleRow,
    Fields,
    InvalidFields,
    mapped_value,
    row_by_row,
    shorten,
    structured,
    text,
)
from ledger.events.imports import Winner

_SCHEMAS: Final = (2, 3)
_VERDICTS: Final[Mapping[str, Winner]] = MappingProxyType(
    {"A": "model_a", "B": "model_b", "tie": "tie", "inconclusive": "no verdict"}
)


def _battles(fields: Fields) -> Iterator[BattleRow]:
    if fields.get("schema_version") not in _SCHEMAS:
        raise InvalidFields(
            f"schema_version is {shorten(fields.get('schema_version'))}, but must be 2 or 3"
        )
    verdict = mapped_value(fields, "majority_verdict", _VERDICTS)
    _require_agreement(fields, verdict)
    yield BattleRow(
        model_a=text(fields, "model_a"),
        model_b=text(fields, "model_b"),
        winner=verdict,
        pref=None,
        question_id=text(fields, "prompt_hash"),
        source="llm-judge",
        judge_model=_jury(fields),
    )


def _require_agreement(fields: Fields, verdict: Winner) -> None:
    """Check the verdict against the field `winner`, which names an entrant.

    Raises:
        InvalidFields: They contradict each other, or the winner is unknown.
    """
    named: Mapping[Winner, tuple[object, ...]] = {
        "model_a": (fields.get("model_a"),),
        "model_b": (fields.get("model_b"),),
        "tie": ("tie",),
        "no verdict": ("inconclusive", "void"),
    }
    winner = fields.get("winner")
    if winner not in named[verdict]:
        said = shorten(fields["majority_verdict"])
        raise InvalidFields(f"winner is {shorten(winner)}, but majority_verdict is {said}")


def _jury(fields: Fields) -> str | None:
    """Return the judges as one name, or None if there are none."""
    votes = structured(fields, "judge_votes", list[dict[str, object]])
    return "+".join(text(vote, "model") for vote in votes) or None


read = row_by_row(_battles)
