"""What is one piece of evidence, and which entrants it puts above which."""

from collections import Counter
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ledger.events.ratings import IntervalUnit
from projections.ratings.bradley_terry.evidence import (
    ClusteredBattles,
    Components,
    clustered_battles,
    components_of,
    strongly_connected,
)
from tests.support.builders.battles import Battle, in_columns
from tests.support.strategies.battles import any_battles

N = 6
EDGES = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=14)


def found(n: int, edges: list[tuple[int, int]]) -> Components:
    """Return the components of a graph."""
    source, target = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    return components_of(n, source, target)


def reaches(n: int, edges: list[tuple[int, int]]) -> NDArray[np.bool_]:
    """Return which node reaches which, by trying every node in between (Warshall)."""
    reached = np.eye(n, dtype=np.bool_)
    for source, target in edges:
        reached[source, target] = True
    for middle in range(n):
        reached |= reached[:, [middle]] & reached[middle]
    return reached


@given(edges=EDGES)
def test_a_component_is_those_that_reach_each_other(edges: list[tuple[int, int]]) -> None:
    """Only among those is a rating a number."""
    components, reached = found(N, edges), reaches(N, edges)

    same = components.label[:, None] == components.label
    assert same.tolist() == (reached & reached.T).tolist()
    together = [*range(len(components))]
    assert sorted(set(components.label.tolist())) == together


@given(edges=EDGES)
def test_a_component_is_above_those_that_it_reaches(edges: list[tuple[int, int]]) -> None:
    """That order, and no more, is known between components; the upper has the lower number."""
    components, reached = found(N, edges), reaches(N, edges)

    label = components.label
    assert components.above[label[:, None], label].tolist() == (reached & ~reached.T).tolist()
    assert not np.tril(components.above).any()


@given(graphs=st.lists(EDGES, min_size=1, max_size=4))
def test_a_graph_is_strongly_connected_if_it_has_one_component(
    graphs: list[list[tuple[int, int]]],
) -> None:
    """The quick test of many resamples must say what the slow one of the data says."""
    matrices = np.zeros((len(graphs), N, N), dtype=np.bool_)
    for matrix, edges in zip(matrices, graphs, strict=True):
        for source, target in edges:
            matrix[source, target] = True

    connected = strongly_connected(matrices)

    assert connected.tolist() == [len(found(N, edges)) == 1 for edges in graphs]


def test_a_long_chain_needs_no_deep_stack() -> None:
    """Python gives up after a thousand calls within each other; arenas have more entrants."""
    chain = [(i, i + 1) for i in range(1499)]

    one_way, round_trip = found(1500, chain), found(1500, [*chain, (1499, 0)])

    assert one_way.label.tolist() == [*range(1500)]
    assert one_way.above[0].sum() == 1499
    assert len(round_trip) == 1


KINDS = get_args(IntervalUnit)


def listed(units: ClusteredBattles) -> Counter[frozenset[tuple[int, int, float, float]]]:
    """Return how often there is a unit of which battles; of no unit twice the same."""
    rows = [*zip(units.a, units.b, units.score, units.weight, units.unit, strict=True)]
    found: Counter[frozenset[tuple[int, int, float, float]]] = Counter()
    for number, count in enumerate(units.count.tolist()):
        found[frozenset(row[:4] for row in rows if row[4] == number)] += count
    return found


def test_a_battle_is_kept_once_whoever_is_named_first() -> None:
    """Millions of battles are a few cells, which is what makes a bootstrap quick."""
    rows = [("a", "b", 1.0, 1), ("b", "a", 0.0, 2), ("b", "a", 1.0, 3)]

    units = clustered_battles(in_columns([*rows, ("a", "b", 1.0, 4, 2.0)]), "battles")

    assert listed(units) == {
        frozenset({(0, 1, 1.0, 1.0)}): 2,
        frozenset({(0, 1, 0.0, 1.0)}): 1,
        frozenset({(0, 1, 1.0, 2.0)}): 1,
    }


def test_the_battles_of_a_prompt_stay_together() -> None:
    """They are no independent evidence; a prompt of one battle is like any other such."""
    rows = [("a", "b", 1.0, "p1"), ("b", "c", 1.0, "p1"), ("a", "b", 1.0, "p2")]

    units = clustered_battles(in_columns([*rows, ("a", "b", 1.0, "p3")]), "prompts")

    assert listed(units) == {
        frozenset({(0, 1, 1.0, 1.0), (1, 2, 1.0, 1.0)}): 1,
        frozenset({(0, 1, 1.0, 1.0)}): 2,
    }


@pytest.mark.parametrize("kind", KINDS)
@given(rows=any_battles(), data=st.data())
def test_no_battle_is_lost(kind: IntervalUnit, rows: list[Battle], data: st.DataObject) -> None:
    """What counts is the same whatever is one piece of evidence, and in any order."""
    shuffled = data.draw(st.permutations(rows))

    units = clustered_battles(in_columns(rows), kind)

    weight = (units.weight * units.count[units.unit]).sum()
    assert weight == pytest.approx(sum(row.weight for row in rows))
    assert listed(clustered_battles(in_columns(shuffled), kind)) == listed(units)
