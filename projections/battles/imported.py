"""Imported battles in columns, with their preferences and whether people voted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.imports import SIGNS, BattlesImported, CodedColumn
from projections.battles.columns import CODES, STATUSES, TOOK, Battles
from projections.battles.soft_scores import ScoredBattles, margin_of, soft_scores
from projections.intervals import Floats
from projections.tournament.compared import STATUS_OF, ComparedBattle

Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

_UNKNOWN: Final = -1  # the number of a prompt, before it gets one of its own
_PLACE_OF: Final = np.zeros(ord(SIGNS[-1]) + 1, dtype=np.intp)  # by sign
_PLACE_OF[[ord(sign) for sign in SIGNS]] = np.arange(len(SIGNS))


@dataclass(frozen=True, kw_only=True)
class BattlesOfSet(Battles):
    """Imported battles, including those without a verdict.

    A battle without a prompt id is a cluster of its own; its score is 1 - pref where that is given.

    Attributes:
        pref: (n,) probability that b is better, in [0, 1]; NaN if not given.
        is_human: (n,) whether people voted, or nobody says who did: no judge is known to have.
    """

    pref: Floats
    is_human: Mask

    @property
    def has_verdict(self) -> Mask:
        """Whether each battle has a verdict; none is not a tie."""
        return ~np.isnan(self.outcome)

    def at_temperature(self, temperature: float) -> "BattlesOfSet":
        """Recompute judges' preferences at a temperature above 0; human votes stay."""
        read = soft_scores(0.0, margin_of(self.pref), temperature=temperature)
        pref = np.where(self.is_human, self.pref, read)
        return replace(self, pref=pref, score=_scores(self.outcome, pref))

    def rated(self, *, soft: bool) -> "BattlesOfSet":
        """Return the battles that have a verdict.

        Args:
            soft: Score by preferences where they were given, not only by who won.
        """
        given = self.take(self.has_verdict)
        return given if soft else replace(given, score=given.outcome)

    def compared(self, name: str) -> tuple[ComparedBattle, ...]:
        """Return the battles of a set as its comparisons, in order."""
        columns = (self.cluster, self.a, self.b, self.status, self.weight, self.pref)
        cells = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(
            ComparedBattle(
                name,
                None if (prompt := self.prompt_of(cluster)) is None else str(prompt),
                cluster,
                self.entrants[a],
                self.entrants[b],
                STATUSES[status],
                weight,
                None if math.isnan(pref) else pref,
            )
            for cluster, a, b, status, weight, pref in cells
        )


def battles_of_set(events: Sequence[BattlesImported]) -> BattlesOfSet:
    """Return the battles of at least one event.

    The same prompt id means the same prompt, whatever file it comes from.
    """
    entrants = tuple(sorted({name for event in events for name in event.entrants}))
    places = {name: place for place, name in enumerate(entrants)}
    numbers: dict[str, int] = {}
    parts = zip(*(_columns(event, places, numbers) for event in events), strict=True)
    a, b, status, pref, prompt, weight, is_human = map(np.concatenate, parts)
    is_unknown = prompt == _UNKNOWN
    prompt[is_unknown] = len(numbers) + np.arange(is_unknown.sum())
    return BattlesOfSet(
        entrants,
        a=a,
        b=b,
        score=_scores(TOOK[status], pref),
        cluster=prompt,
        weight=weight,
        status=status,
        prompts=tuple(numbers),
        counted="battles",
        pref=pref,
        is_human=is_human,
    )


def scored_preferences(table: BattlesOfSet) -> ScoredBattles:
    """Return the battles for which a judge gave a preference; 0 or 1 makes an infinite margin."""
    given = table.take(~table.is_human & ~np.isnan(table.pref)).rated(soft=False)
    return ScoredBattles(given, margin_of(given.pref))


def _scores(outcome: Floats, pref: Floats) -> Floats:
    """Return what a took by preferences where they are given; nan without a verdict."""
    return np.where(np.isnan(outcome) | np.isnan(pref), outcome, 1 - pref)


def _columns(
    event: BattlesImported, places: Mapping[str, int], numbers: dict[str, int]
) -> tuple[NDArray[Any], ...]:
    """Return the columns of an event, in order; new prompts get the next numbers."""
    n = event.n_battles
    names = np.array([places[name] for name in event.entrants])
    prompts = [
        _UNKNOWN if prompt is None else numbers.setdefault(prompt, len(numbers))
        for prompt in event.prompts.values
    ]
    prefs = [math.nan if pref is None else pref for pref in event.prefs.values]
    statuses = [CODES[STATUS_OF[winner]] for winner in event.winners.values]
    return (
        names[_decoded(event.a)],
        names[_decoded(event.b)],
        _cells(event.winners, statuses, n).astype(np.uint8),
        _cells(event.prefs, prefs, n),
        _cells(event.prompts, prompts, n),
        _cells(event.weights, event.weights.values, n),
        _cells(event.sources, [source != "llm-judge" for source in event.sources.values], n),
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
