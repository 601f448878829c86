"""tap's judgments: the cache judgments_{dimension}.jsonl, and its runs' verdicts/{dimension}.jsonl.

A cached row is one order of a pair. A run's row is a pair with both orders under `raw`, which
are read one by one, since tourney reconciles them itself. Each becomes a battle in the order
shown. Both files hold the same judgments, so import only one; its name gives the dimension.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commands.importing.formats.rows import (
    BadRow,
    Cells,
    Fields,
    InvalidFields,
    Records,
    row_by_row,
    shorten,
)
from ledger.events.imports import ImportedBattle, Winner

_VERDICTS: Final[Mapping[str, Winner]] = {"A": "model_a", "B": "model_b", "TIE": "tie"}
_SAYS_TIE: Final = re.compile(r"\s*VERDICT:\s*TIE", re.IGNORECASE)


def read(records: Records) -> Iterator[ImportedBattle | BadRow]:
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


def set_of(file: Path) -> str:
    """Return the set for a file: each dimension has its own."""
    return f"tap-{file.stem.removeprefix('judgments_')}"


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
    if _is_swapped(judgment):
        first, second = second, first
    return ImportedBattle(
        model_a=first,
        model_b=second,
        winner=_winner(judgment),
        pref=None,
        question_id=judgment.text("prompt_id"),
        source="llm-judge",
        judge_model=judgment.text("judge_model"),
    )


def _is_swapped(judgment: Cells) -> bool:
    swap = judgment.fields.get("position_swap")
    if not isinstance(swap, bool):
        raise InvalidFields(f"position_swap is {shorten(swap)}, but must be true or false")
    return swap


def _winner(judgment: Cells) -> Winner:
    """Return the winner; a tie that the reply does not state is no verdict.

    tap recorded a tie for every reply in which it found no verdict.
    """
    winner = judgment.mapped_value("verdict", _VERDICTS)
    reply = judgment.optional_text("reasoning")
    if winner == "tie" and reply is not None and not any(map(_SAYS_TIE.match, reply.splitlines())):
        return "no verdict"
    return winner
