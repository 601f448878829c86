"""A run's verdicts/{dimension}.jsonl, as `tourney run` writes them: reconciled pairs.

A row becomes one battle, with the outcome of its two orders, as it counts in the run's ratings. An
inconsistent pair has no verdict. Of the responses, the number of characters is kept.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commands.importing.formats.rows import Cells, row_by_row
from ledger.events.imports import ImportedBattle, Winner

_OUTCOMES: Final[Mapping[str, Winner]] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "inconsistent": "no verdict",
}


def set_of(file: Path) -> str:
    """Return the set for a file: each dimension has its own."""
    return f"verdicts-{file.stem}"


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    replies = [Cells(reply) for reply in cells.structured("raw", list[dict[str, object]])]
    judges = dict.fromkeys(reply.text("judge_model") for reply in replies)
    pair = replies[0].structured("pair", dict[str, object]) if replies else {}
    yield ImportedBattle(
        model_a=cells.text("entrant_a"),
        model_b=cells.text("entrant_b"),
        winner=cells.mapped_value("outcome", _OUTCOMES),
        pref=None,
        question_id=cells.text("prompt_id"),
        source="llm-judge",
        judge_model="+".join(judges) or None,
        categories=Cells(pair).labels("source"),
        length_a=Cells(pair).length("response_a"),
        length_b=Cells(pair).length("response_b"),
    )
