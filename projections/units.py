"""What an interval takes as one piece of evidence: a prompt with all its battles, or a battle.

A fit depends on counts alone, so units that are alike are kept once, with their number. That
leaves a few cells of millions of battles, and a bootstrap that draws the numbers of cells is
exactly the bootstrap that draws battles.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import IntervalUnit
from projections.battles import Battles


class _Columns(NamedTuple):
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """Battles in columns, each with the unit that it belongs to.

    Attributes:
        n_entrants: Of how many entrants these are the battles.
        a: (n,) an entrant.
        b: (n,) another, of a higher number.
        score: (n,) in [0, 1], what a took.
        weight: (n,) positive.
        unit: (n,) the number of the battle's unit.
        count: (n_units,) how many units are alike; 1 for units of several battles.
    """

    n_entrants: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]
    unit: NDArray[np.intp]
    count: NDArray[np.int64]

    def within(self, members: NDArray[np.intp]) -> "Units":
        """Return the battles among some entrants, (n_members,) ascending, all numbered anew."""
        inside = np.isin(self.a, members) & np.isin(self.b, members)
        met, unit = np.unique(self.unit[inside], return_inverse=True)
        return Units(
            len(members),
            a=np.searchsorted(members, self.a[inside]),
            b=np.searchsorted(members, self.b[inside]),
            score=self.score[inside],
            weight=self.weight[inside],
            unit=unit,
            count=self.count[met],
        )


def units_of(battles: Battles, kind: IntervalUnit) -> Units:
    """Group battles by what is one piece of evidence; prompts of one battle may be alike."""
    if kind == "battles":
        return _cells(battles, np.ones(len(battles), dtype=np.bool_))
    alone = np.bincount(battles.cluster)[battles.cluster] == 1
    cells = _cells(battles, alone)
    a, b, score, weight = _columns(battles, ~alone)
    prompts, unit = np.unique(battles.cluster[~alone], return_inverse=True)
    return Units(
        cells.n_entrants,
        a=np.concatenate((cells.a, a)),
        b=np.concatenate((cells.b, b)),
        score=np.concatenate((cells.score, score)),
        weight=np.concatenate((cells.weight, weight)),
        unit=np.concatenate((cells.unit, len(cells.count) + unit)),
        count=np.concatenate((cells.count, np.ones_like(prompts, dtype=np.int64))),
    )


def _cells(battles: Battles, chosen: NDArray[np.bool_]) -> Units:
    """Return each distinct battle among the chosen once, as a unit."""
    a, b, score, weight = _columns(battles, chosen)
    n, scores, weights = len(battles.entrants), np.unique(score), np.unique(weight)
    shape = (n, n, len(scores), len(weights))
    places = (a, b, np.searchsorted(scores, score), np.searchsorted(weights, weight))
    cell, count = np.unique(np.ravel_multi_index(places, shape), return_counts=True)
    a, b, at_score, at_weight = np.unravel_index(cell, shape)
    return Units(n, a, b, scores[at_score], weights[at_weight], np.arange(len(cell)), count)


def _columns(battles: Battles, chosen: NDArray[np.bool_]) -> _Columns:
    """Return who met, the lower number first, what that one took, and the weight."""
    a, b, score = battles.a[chosen], battles.b[chosen], battles.score[chosen]
    score = np.where(a < b, score, 1.0 - score)
    return _Columns(np.minimum(a, b), np.maximum(a, b), score, battles.weight[chosen])
