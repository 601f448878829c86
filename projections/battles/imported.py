"""Imported battles as arrays, including those without a verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ledger.events.imports import SIGNS, BattlesImported, CodedColumn, Winner
from projections.battles.columns import Battles
from projections.battles.soft_scores import margin_of, soft_scores
from projections.tournament.compared import STATUS_OF, ComparedBattle

Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

WINNERS: Final[tuple[Winner, ...]] = get_args(Winner)
_TOOK: Final[Mapping[Winner, float]] = {
    "model_a": 1.0,
    "model_b": 0.0,
    "tie": 0.5,
    "tie (bothbad)": 0.5,
    "no verdict": np.nan,
}
_COLUMNS: Final = ("a", "b", "winner", "pref", "prompt", "weight", "is_human")
_UNKNOWN: Final = -1  # the number of a prompt, before it gets one of its own
_PLACE_OF: Final = np.zeros(ord(SIGNS[-1]) + 1, dtype=np.intp)  # by sign
_PLACE_OF[[ord(sign) for sign in SIGNS]] = np.arange(len(SIGNS))


@dataclass(frozen=True)
class BattleTable:
    """Imported battles as arrays, including those without a verdict.

    Attributes:
        entrants: (n_entrants,) names, sorted.
        a: (n,) index of one entrant among the names.
        b: (n,) index of the other.
        winner: (n,) index of the result in WINNERS.
        pref: (n,) probability that b is better, in [0, 1]; NaN if not given.
        prompt: (n,) the number of the prompt; a battle without a prompt id has a number of its own.
        weight: (n,) positive, how often the battle counts.
        is_human: (n,) whether people voted, or nobody says who did: no judge is known to have.
        prompts: Ids of the first prompts, in order of their numbers; later numbers have none.
    """

    entrants: tuple[str, ...]
    a: Places
    b: Places
    winner: Places
    pref: NDArray[np.float64]
    prompt: Places
    weight: NDArray[np.float64]
    is_human: Mask
    prompts: tuple[str, ...]

    @property
    def has_verdict(self) -> Mask:
        """Whether each battle has a verdict; none is not a tie."""
        has_verdict: Mask = self.winner != WINNERS.index("no verdict")
        return has_verdict

    def where(self, kept: Mask) -> "BattleTable":
        """Select battles by a mask, (n,)."""
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

    def at_temperature(self, temperature: float, *, made_at: float) -> "BattleTable":
        """Recompute judges' preferences at another temperature; human votes stay.

        Args:
            temperature: The new one, above 0.
            made_at: The one that the preferences were made with.
        """
        margin = margin_of(self.pref, made_at=made_at)
        read = soft_scores(0.0, margin, temperature=temperature)
        return replace(self, pref=np.where(self.is_human, self.pref, read))

    def battles(self, *, soft: bool) -> Battles:
        """Return the battles that have a verdict, scored for a.

        Args:
            soft: Score by 1 - pref where a preference was given, not only by who won.
        """
        given = self.where(self.has_verdict)
        took = np.array([_TOOK[winner] for winner in WINNERS])[given.winner]
        is_soft = soft & ~np.isnan(given.pref)
        score = np.where(is_soft, 1 - given.pref, took)
        return Battles(
            given.entrants, given.a, given.b, score, given.prompt, given.weight, given.prompts
        )

    def compared(self, name: str) -> tuple[ComparedBattle, ...]:
        """Return the battles of a set as its comparisons, in order."""
        columns = (self.prompt, self.a, self.b, self.winner, self.weight, self.pref)
        cells = zip(*map(np.ndarray.tolist, columns), strict=True)
        statuses = [STATUS_OF[winner] for winner in WINNERS]
        ids = dict(enumerate(self.prompts))
        return tuple(
            ComparedBattle(
                name,
                ids.get(prompt),
                prompt,
                self.entrants[a],
                self.entrants[b],
                statuses[winner],
                weight,
                None if math.isnan(pref) else pref,
            )
            for prompt, a, b, winner, weight, pref in cells
        )


def table_of(events: Sequence[BattlesImported]) -> BattleTable:
    """Build a table from at least one event.

    The same prompt id means the same prompt, whatever file it comes from.
    """
    entrants = tuple(sorted({name for event in events for name in event.entrants}))
    places = {name: place for place, name in enumerate(entrants)}
    numbers: dict[str, int] = {}
    parts = zip(*(_columns(event, places, numbers) for event in events), strict=True)
    a, b, winner, pref, prompt, weight, is_human = map(np.concatenate, parts)
    is_unknown = prompt == _UNKNOWN
    prompt[is_unknown] = len(numbers) + np.arange(is_unknown.sum())
    return BattleTable(entrants, a, b, winner, pref, prompt, weight, is_human, tuple(numbers))


def _columns(
    event: BattlesImported, places: Mapping[str, int], numbers: dict[str, int]
) -> tuple[NDArray[Any], ...]:
    """Return the columns of an event, in order; new prompts get the next numbers."""
    n = event.n_battles
    names = np.array([places[name] for name in event.entrants])
    prompts = [
        _UNKNOWN if each is None else numbers.setdefault(each, len(numbers))
        for each in event.prompts.values
    ]
    prefs = [math.nan if each is None else each for each in event.prefs.values]
    return (
        names[_decoded(event.a)],
        names[_decoded(event.b)],
        _cells(event.winners, [WINNERS.index(each) for each in event.winners.values], n),
        _cells(event.prefs, prefs, n),
        _cells(event.prompts, prompts, n),
        _cells(event.weights, event.weights.values, n),
        _cells(event.sources, [each != "llm-judge" for each in event.sources.values], n),
    )


def _cells(column: CodedColumn[Any], values: Sequence[float], n_battles: int) -> NDArray[Any]:
    """Return the number that stands for each battle's value, (n_battles,)."""
    table = np.array(values)
    if column.codes:
        return table[_decoded(column.codes)]
    return table if len(table) == n_battles else np.repeat(table, n_battles)


def _decoded(codes: str) -> Places:
    """Return the index of the value that each code stands for."""
    places: Places = _PLACE_OF[np.frombuffer(codes.encode("utf-32-le"), dtype="<u4")]
    return places
