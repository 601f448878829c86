"""Battles as records in the shape of JudgeArena's `Battle`, with its fields alone.

JudgeArena says of a judge's reply that it could not read: a tie without a preference. A field that
has nothing to say is left out; a weight, which JudgeArena has no field for, is told where it is not
1. Reading what was written here, by the mapping of format judgearena, gives the same battles.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from ledger.events.imports import SIGNS, BattlesImported, Source, Winner
from ledger.identity import Json
from projections.settlement import Settlement

Fields: TypeAlias = dict[str, Json]

_SAID: Final[Mapping[str, tuple[Winner, float]]] = MappingProxyType(
    {"a": ("model_a", 0.0), "b": ("model_b", 1.0), "tie": ("tie", 0.5)}
)
"""The winner by outcome, and how probably b is better."""


def of_settlements(settlements: Iterable[Settlement], judge_model: str | None) -> Iterator[Fields]:
    """Yield a battle for each pairing, or each order of one, that was decided or tied.

    Args:
        settlements: In order; where each order counts for itself, a battle names its entrants as
            the pairing does, whatever slots they were shown in.
        judge_model: Who judged; None where it was a jury.
    """
    for settlement in settlements:
        if settlement.status in _SAID:
            winner, pref = _SAID[settlement.status]
            yield _record(
                settlement.pairing.a.entrant.entrant_id,
                settlement.pairing.b.entrant.entrant_id,
                winner,
                pref,
                "llm-judge",
                judge_model,
                settlement.pairing.prompt.prompt_id,
            )


def of_imported(events: Iterable[BattlesImported]) -> Iterator[Fields]:
    """Yield imported battles, in order."""
    for event in events:
        n = event.n_battles
        entrants = dict(zip(SIGNS, event.entrants, strict=False))
        yield from map(
            _record,
            map(entrants.__getitem__, event.a),
            map(entrants.__getitem__, event.b),
            event.winners.cells(n),
            event.prefs.cells(n),
            event.sources.cells(n),
            event.judges.cells(n),
            event.prompts.cells(n),
            event.weights.cells(n),
        )


def _record(
    model_a: str,
    model_b: str,
    winner: Winner,
    pref: float | None,
    source: Source,
    judge_model: str | None,
    question_id: str | None,
    weight: float = 1.0,
) -> Fields:
    is_unread = winner == "no verdict" and source == "llm-judge"
    said: Fields = {
        "model_a": model_a,
        "model_b": model_b,
        "winner": "tie" if is_unread else winner,
    }
    if pref is not None or is_unread:
        said["pref"] = pref
    said["source"] = source
    if judge_model is not None:
        said["judge_model"] = judge_model
    if question_id is not None:
        said["question_id"] = question_id
    if weight != 1:
        said["weight"] = weight
    return said
