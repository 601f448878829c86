"""Which entrants can be compared, and which battles are independent.

Between two entrants there is a finite difference of strength only if each, perhaps through others,
scored against the other (Ford 1957): if they are in one strongly connected component. Where that
went one way only, one is above the other by more than any number; where neither way, nothing is
known. Battles are grouped in clusters, by prompt or each alone; clusters are independent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import IntervalUnit
from projections.battles.columns import Battles
from projections.intervals import FEWEST_CLUSTERS


@dataclass(frozen=True)
class Components:
    """The components of a graph, and which of them is above which.

    Attributes:
        label: (n,) the number of each node's component; what is above has the lower number.
        above: (n_components, n_components) bool, above[x, y]: a way leads from x to y, and hence
            none back.
    """

    label: NDArray[np.intp]
    above: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return n_components."""
        return len(self.above)

    def __iter__(self) -> Iterator[NDArray[np.intp]]:
        """Yield each component's nodes, in order."""
        return map(self.members, range(len(self)))

    def members(self, component: int) -> NDArray[np.intp]:
        """Return the nodes of a component, in order."""
        return np.flatnonzero(self.label == component)


def components_of(n: int, source: NDArray[np.intp], target: NDArray[np.intp]) -> Components:
    """Find the strongly connected components of n nodes, given edges from source to target.

    The number of a component follows from when a depth-first search is done with it: the last is 0.
    """
    edges = np.zeros((n, n), dtype=np.bool_)
    edges[source, target] = True
    reach = _reached(edges)
    done = np.argsort(np.array(_depth_first(edges), dtype=np.intp))
    last = np.where(reach & reach.T, done, -1).max(axis=1, initial=-1)  # alike in a component
    _, first, label = np.unique(-last, return_index=True, return_inverse=True)
    above = reach[np.ix_(first, first)]
    np.fill_diagonal(above, val=False)
    return Components(label, above)


def _depth_first(edges: NDArray[np.bool_]) -> list[int]:
    """Return the nodes in the order in which a depth-first search is done with them."""
    done: list[int] = []
    successors, seen = [iter(np.flatnonzero(row).tolist()) for row in edges], set[int]()
    for root in range(len(edges)):
        way = [] if root in seen else [root]
        while way:
            seen.add(way[-1])
            following = next(
                (successor for successor in successors[way[-1]] if successor not in seen), None
            )
            if following is None:
                done.append(way.pop())
            else:
                way.append(following)
    return done


def one_component(n: int) -> Components:
    """Return n nodes as a single component, whatever the edges."""
    size = min(n, 1)
    return Components(np.zeros(n, dtype=np.intp), np.zeros((size, size), dtype=np.bool_))


def strongly_connected(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say of each of several graphs whether it is strongly connected, (batch,).

    Args:
        edges: (batch, n, n), edges[g, i, j]: in graph g an edge leads from i to j.
    """
    return np.asarray(_reached(edges).all(axis=(1, 2)))


def _reached(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which node reaches which, (..., n, n), each itself, in one graph or in several."""
    reach, n_reached = edges | np.eye(edges.shape[-1], dtype=np.bool_), 0
    while n_reached < reach.sum():
        n_reached, steps = reach.sum(), reach.astype(np.float32)
        reach = steps @ steps > 0  # products of matrices are fast with floats only
    return reach


@dataclass(frozen=True)
class ClusteredBattles:
    """Battles as arrays, each with its cluster; clusters that are alike are counted once.

    Attributes:
        n_entrants: How many entrants there are.
        a: (n,) an entrant.
        b: (n,) another.
        score: (n,) a's score, in [0, 1].
        weight: (n,) positive.
        unit: (n,) the number of the battle's cluster.
        count: (n_clusters,) how many clusters are alike; 1 for clusters of several battles.
    """

    n_entrants: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]
    unit: NDArray[np.intp]
    count: NDArray[np.int64]

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp] | slice) -> "ClusteredBattles":
        """Select battles; keep all entrants and clusters."""
        return replace(
            self,
            a=self.a[chosen],
            b=self.b[chosen],
            score=self.score[chosen],
            weight=self.weight[chosen],
            unit=self.unit[chosen],
        )

    def within(self, members: NDArray[np.intp]) -> "ClusteredBattles":
        """Return the battles among some entrants, (n_members,) ascending, renumbered."""
        inside = self.take(np.isin(self.a, members) & np.isin(self.b, members))
        met, unit = np.unique(inside.unit, return_inverse=True)
        return replace(
            inside,
            n_entrants=len(members),
            a=np.searchsorted(members, inside.a),
            b=np.searchsorted(members, inside.b),
            unit=unit,
            count=self.count[met],
        )


class Support(NamedTuple):
    """What ratings rest on, within each component.

    n_clusters: (n,) in which an entrant fought; weight: (n,) of an entrant in the mean, 1 or less.
    """

    n_clusters: NDArray[np.int64]
    weight: NDArray[np.float64]

    @property
    def is_enough(self) -> NDArray[np.bool_]:
        """Where there are enough clusters for an interval, and a rank."""
        return np.asarray(self.n_clusters >= FEWEST_CLUSTERS)

    def shares(self, label: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the share of each entrant in the mean of its component, (n,)."""
        return np.asarray(self.weight / np.bincount(label, self.weight)[label])


def support_of(units: ClusteredBattles, label: NDArray[np.intp]) -> Support:
    """Count clusters, given the number of each entrant's component, and weigh entrants by them.

    An entrant of too few clusters has weight 0, one of less than half as many as the median of the
    others a part of 1: so a newcomer hardly moves the mean. Where nobody has enough, all weigh 1.
    """
    n = units.n_entrants
    own = units.take(label[units.a] == label[units.b])
    entrant, unit = np.concatenate((own.a, own.b)), np.tile(own.unit, 2)
    met, met_in = np.divmod(np.unique(entrant * len(own.count) + unit), max(len(own.count), 1))
    n_clusters = np.bincount(met, own.count[met_in], minlength=n).astype(np.int64)
    is_enough, weight = n_clusters >= FEWEST_CLUSTERS, np.ones(n)
    for number in np.unique(label[is_enough]):
        members = label == number
        usual = np.median(n_clusters[members & is_enough])
        weight[members] = np.minimum(1.0, 2 * n_clusters[members] / usual)
        weight[members & ~is_enough] = 0.0
    return Support(n_clusters, weight)


def clustered_battles(battles: Battles, kind: IntervalUnit) -> ClusteredBattles:
    """Group battles into clusters; equal battles that are alone in theirs are counted together."""
    n, n_battles = len(battles.entrants), len(battles)
    score = np.where(battles.a < battles.b, battles.score, 1.0 - battles.score)
    a, b = np.minimum(battles.a, battles.b), np.maximum(battles.a, battles.b)
    is_alone = np.ones(n_battles, dtype=np.bool_)
    if kind == "prompts":
        is_alone = np.bincount(battles.cluster)[battles.cluster] == 1
    alone, others = np.flatnonzero(is_alone), np.flatnonzero(~is_alone)
    scores, at_score = np.unique(score[alone], return_inverse=True)
    weights, at_weight = np.unique(battles.weight[alone], return_inverse=True)
    places = (a[alone], b[alone], at_score, at_weight)
    cell = np.ravel_multi_index(places, (n, n, len(scores), len(weights)))
    _, first, count = np.unique(cell, return_index=True, return_counts=True)
    prompts, unit = np.unique(battles.cluster[others], return_inverse=True)
    chosen = np.concatenate((alone[first], others))
    return ClusteredBattles(
        n,
        a=a[chosen],
        b=b[chosen],
        score=score[chosen],
        weight=battles.weight[chosen],
        unit=np.concatenate((np.arange(len(first)), len(first) + unit)),
        count=np.concatenate((count, np.ones_like(prompts))),
    )


def single_battles(battles: Battles, chosen: NDArray[np.bool_]) -> ClusteredBattles:
    """Return some battles one by one, clustered by prompt, in the order of prompts' numbers."""
    prompts, unit = np.unique(battles.cluster[chosen], return_inverse=True)
    return ClusteredBattles(
        len(battles.entrants),
        a=battles.a[chosen],
        b=battles.b[chosen],
        score=battles.score[chosen],
        weight=battles.weight[chosen],
        unit=unit,
        count=np.ones_like(prompts),
    )
