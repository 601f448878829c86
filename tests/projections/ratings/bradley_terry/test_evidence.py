"""What is one piece of evidence, and which entrants it puts above which."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from projections.ratings.bradley_terry.evidence import Components, components_of, strongly_connected

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
