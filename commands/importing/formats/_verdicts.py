"""A run's verdicts/{dimension}.jsonl, as `tourney run` writes them: reconciled pairs.

A row becomes one battle, as it counts in the run's ratings: by the outcome of its two orders, or by
the mean of their verdicts where they disagree. Of the responses, the number of characters is kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Final

from commands.importing.formats.rows import Cells, row_by_row
from ledger.events.imports import ImportedBattle, Winner
from projections.artifacts.judgearena import winner_by
from projections.battles.columns import TIE

_OUTCOMES: Final[Mapping[str, Winner]] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "inconsistent": "no verdict",
}
_TOOK: Final[Mapping[str, float]] = {"A": 1.0, "B": 0.0, "TIE": TIE}


def set_of(file: Path) -> str:
    """Return the set for a file: each dimension has its own."""
    return f"verdicts-{file.stem}"


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    replies = [Cells(reply) for reply in cells.structured("raw", list[dict[str, object]])]
    judges = dict.fromkeys(reply.text("judge_model") for reply in replies)
    pair = replies[0].structured("pair", dict[str, object]) if replies else {}
    winner = cells.mapped_value("outcome", _OUTCOMES)
    pref = _mean_preference(replies) if replies and winner == "no verdict" else None
    yield ImportedBattle(
        model_a=cells.text("entrant_a"),
        model_b=cells.text("entrant_b"),
        winner=winner if pref is None else winner_by(1 - pref),
        pref=pref,
        question_id=cells.text("prompt_id"),
        source="llm-judge",
        judge_model="+".join(judges) or None,
        categories=Cells(pair).labels("source"),
        length_a=Cells(pair).length("response_a"),
        length_b=Cells(pair).length("response_b"),
    )


def _mean_preference(replies: Iterable[Cells]) -> float:
    """Return how much the verdicts of both orders prefer b."""
    took = [
        (reply.mapped_value("verdict", _TOOK), reply.fields.get("position_swap") is True)
        for reply in replies
    ]
    return fmean(score if is_swapped else 1 - score for score, is_swapped in took)
