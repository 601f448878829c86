"""Verdicts of whole runs: verdicts/{dimension}.jsonl of `tourney run`, and tap's judgments.

A row of `tourney run` is a reconciled pair. It becomes one battle, as it counts in the run's
ratings: by the outcome of its two orders, or by the mean of their verdicts where they disagree. Of
the responses, the number of characters is kept.

A row of tap's cache judgments_{dimension}.jsonl is one order of a pair. A row of its runs'
verdicts/{dimension}.jsonl is a pair with both orders under `raw`, which are read one by one, since
tourney reconciles them itself. Each becomes a battle in the order shown. Both files hold the same
judgments, so import only one; its name gives the dimension.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Final

from commands.importing.formats.rows import (
    BadRow,
    BattleFormat,
    Cells,
    Fields,
    InvalidFields,
    Records,
    row_by_row,
    shorten,
)
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


@row_by_row
def _read_verdicts(cells: Cells) -> Iterator[ImportedBattle]:
    replies = [Cells(reply) for reply in cells.structured("raw", list[dict[str, object]])]
    judges = dict.fromkeys(reply.text("judge_model") for reply in replies)
    pair = replies[0].structured("pair", dict[str, object]) if replies else {}
    winner = cells.mapped_value("outcome", _OUTCOMES)
    pref = _mean_preference(replies) if replies and winner == "no verdict" else None
    yield ImportedBattle(
        cells.text("entrant_a"),
        cells.text("entrant_b"),
        winner if pref is None else winner_by(1 - pref),
        pref,
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


VERDICTS: Final = BattleFormat(
    "verdicts",
    _read_verdicts,
    "verdicts/*.jsonl of `tourney run`",
    ("prompt_id", "entrant_a", "entrant_b", "outcome", "raw"),
    set_by_file=lambda file: f"verdicts-{file.stem}",  # each dimension has its own
    mapping_version=2,
)

_VERDICTS: Final[Mapping[str, Winner]] = {"A": "model_a", "B": "model_b", "TIE": "tie"}
_SAYS_TIE: Final = re.compile(r"\s*VERDICT:\s*TIE", re.IGNORECASE)


def _read_tap(records: Records) -> Iterator[ImportedBattle | BadRow]:
    """Read judgments; of two with one cache key, the later counts."""
    latest: dict[str | int, tuple[ImportedBattle | BadRow, ...]] = {}
    for record in records:
        rows = tuple(_each_order([record]))
        if isinstance(record, BadRow) or any(isinstance(row, BadRow) for row in rows):
            yield from rows
        else:
            key = record.fields.get("cache_key")
            latest[record.line if Cells(record.fields).lacks("cache_key") else repr(key)] = rows
    for rows in latest.values():
        yield from rows


@row_by_row
def _each_order(cells: Cells) -> Iterator[ImportedBattle]:
    if "raw" in cells.fields:
        for order in cells.structured("raw", tuple[dict[str, object], dict[str, object]]):
            yield _battle(order, "pair")
    else:
        yield _battle(cells.fields, "metadata")


def _battle(fields: Fields, inner: str) -> ImportedBattle:
    """Return the battle of a judgment, some fields of which are in one of them."""
    judgment = Cells({**fields, **Cells(fields).structured(inner, dict[str, object])})
    first, second = judgment.text("entrant_a"), judgment.text("entrant_b")
    swap = judgment.fields.get("position_swap")
    if not isinstance(swap, bool):
        raise InvalidFields(f"position_swap is {shorten(swap)}, but must be true or false")
    return ImportedBattle(
        second if swap else first,
        first if swap else second,
        _winner(judgment),
        question_id=judgment.text("prompt_id"),
        source="llm-judge",
        judge_model=judgment.text("judge_model"),
    )


def _winner(judgment: Cells) -> Winner:
    """Return the winner; a tie that the reply does not state is no verdict.

    tap recorded a tie for every reply in which it found no verdict.
    """
    winner = judgment.mapped_value("verdict", _VERDICTS)
    reply = judgment.optional_text("reasoning")
    if winner == "tie" and reply is not None and not any(map(_SAYS_TIE.match, reply.splitlines())):
        return "no verdict"
    return winner


TAP: Final = BattleFormat(
    "tap",
    _read_tap,
    "tap's judgments_*.jsonl, or its verdicts/*.jsonl",
    (),
    ("cache_key", "verdict", "judge_model", "reasoning", "metadata", "raw"),
    lambda file: f"tap-{file.stem.removeprefix('judgments_')}",  # each dimension has its own
    tells=("cache_key", "raw"),
)
