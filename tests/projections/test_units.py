"""Battles grouped by what is one piece of evidence."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import IntervalUnit
from projections.battles.columns import Battle, battles_of
from projections.ratings.bradley_terry.evidence import ClusteredBattles, clustered_battles
from tests.projections.battle_strategies import battles

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

    units = clustered_battles(battles_of([*rows, ("a", "b", 1.0, 4, 2.0)]), "battles")

    assert listed(units) == {
        frozenset({(0, 1, 1.0, 1.0)}): 2,
        frozenset({(0, 1, 0.0, 1.0)}): 1,
        frozenset({(0, 1, 1.0, 2.0)}): 1,
    }


def test_the_battles_of_a_prompt_stay_together() -> None:
    """They are no independent evidence; a prompt of one battle is like any other such."""
    rows = [("a", "b", 1.0, "p1"), ("b", "c", 1.0, "p1"), ("a", "b", 1.0, "p2")]

    units = clustered_battles(battles_of([*rows, ("a", "b", 1.0, "p3")]), "prompts")

    assert listed(units) == {
        frozenset({(0, 1, 1.0, 1.0), (1, 2, 1.0, 1.0)}): 1,
        frozenset({(0, 1, 1.0, 1.0)}): 2,
    }


def test_within_some_entrants_all_is_numbered_anew() -> None:
    """A component is fitted as if there were no others."""
    rows = [("a", "b", 1.0, 1), ("b", "d", 0.0, 2), ("d", "b", 0.5, 2), ("c", "d", 1.0, 2)]

    within = clustered_battles(battles_of(rows), "prompts").within(battles_of(rows).b[[0, 1]])

    assert within.n_entrants == 2
    assert listed(within) == {frozenset({(0, 1, 0.0, 1.0), (0, 1, 0.5, 1.0)}): 1}


@pytest.mark.parametrize("kind", KINDS)
@given(rows=battles(), data=st.data())
def test_no_battle_is_lost(kind: IntervalUnit, rows: list[Battle], data: st.DataObject) -> None:
    """What counts is the same whatever is one piece of evidence, and in any order."""
    shuffled = data.draw(st.permutations(rows))

    units = clustered_battles(battles_of(rows), kind)

    weight = (units.weight * units.count[units.unit]).sum()
    assert weight == pytest.approx(sum(row.weight for row in rows))
    assert listed(clustered_battles(battles_of(shuffled), kind)) == listed(units)
