"""arena-hard-auto's judgments: model_judgment/{judge}/{model}.jsonl, of v2.0 and of v0.1.

A row is a prompt on which the judge compared a model with the benchmark's baseline, once in each
order: in the first game the baseline is in slot A, in the second the model is. Each game becomes a
battle in the order shown. A game without a readable label has no verdict; the scores of v2.0
exclude its prompt, those of v0.1 the game.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from commands.importing.formats.rows import Cells, Fields, InvalidFields, row_by_row
from ledger.events.imports import ImportedBattle, Winner

_MUCH: Final = 3.0  # weight of `much better`, as in its show_result.py
_BASELINE_V0_1: Final = "gpt-4-0314"  # from its show_result.py; rows of v0.1 do not name it


class _Label(NamedTuple):
    winner: Winner
    weight: float = 1.0


_LABELS: Final[Mapping[str, _Label]] = {
    "A>>B": _Label("model_a", _MUCH),
    "A>B": _Label("model_a"),
    "A=B": _Label("tie"),
    "A<B": _Label("model_b"),
    "A<<B": _Label("model_b", _MUCH),
    "B>>A": _Label("model_b", _MUCH),
    "B>A": _Label("model_b"),
    "B=A": _Label("tie"),
    "B<A": _Label("model_a"),
    "B<<A": _Label("model_a", _MUCH),
}


@row_by_row
def read(cells: Cells) -> Iterator[ImportedBattle]:
    model, baseline = cells.text("model"), _baseline(cells)
    games = cells.structured("games", list[dict[str, object] | None])
    orders = ((baseline, model), (model, baseline))
    if len(games) not in {1, len(orders)}:  # v0.1 can play the first game only
        raise InvalidFields(f"there are {len(games)} games; there must be one or two")
    for (first, second), game in zip(orders, games, strict=False):
        label = _label(game)
        yield ImportedBattle(
            model_a=first,
            model_b=second,
            winner=label.winner,
            pref=None,
            question_id=cells.text("uid" if "uid" in cells.fields else "question_id"),
            source="llm-judge",
            judge_model=cells.text("judge"),
            weight=label.weight,
            categories=cells.labels("category"),
        )


def _baseline(cells: Cells) -> str:
    """Return the baseline that the model was compared with."""
    if "question_id" in cells.fields and cells.lacks("baseline"):
        return _BASELINE_V0_1
    return cells.text("baseline")


def _label(game: Fields | None) -> _Label:
    """Return the meaning of a game's label; no verdict if the judge failed."""
    if game is None or Cells(game).lacks("score"):
        return _Label("no verdict")
    return Cells(game).mapped_value("score", _LABELS)
