"""Comparisons in columns are the comparisons one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import TieRule
from ledger.events.registry import Event
from projections.battles.columns import STATUSES, TIE, Battles, battles_of, joined
from projections.tournament.compared import Compared, ComparedBattle, account_of
from projections.tournament.settlement import settle
from projections.verdicts.policies import CONCATENATE, Rule
from tests.support.builders.battles import in_columns
from tests.support.builders.events import known
from tests.support.builders.worlds import everything
from tests.support.strategies.tournaments import tournament_histories

RULES: tuple[TieRule, ...] = ("drop", "half")


def one_by_one(compared: list[Compared], ties: TieRule) -> Battles:
    """Return the battles that count, as their definition says; prompts by the first's id."""
    names = {each.cluster: each.prompt_id for each in reversed(compared)}
    found = in_columns(
        (each.entrant_a, each.entrant_b, score, each.cluster, each.weight)
        for each in compared
        if (score := each.score) is not None and (score != TIE or ties == "half")
    )
    return replace(found, prompts=tuple(names[each] for each in found.prompts))


def require_equal(found: Battles, expected: Battles) -> None:
    """Require the same names, in the same order, and the same columns."""
    assert (found.entrants, found.prompts) == (expected.entrants, expected.prompts)
    for name in ("a", "b", "score", "cluster", "weight"):
        column, other = getattr(found, name), getattr(expected, name)
        assert (column.dtype, column.tolist()) == (other.dtype, other.tolist())


@given(events=tournament_histories(), ties=st.sampled_from(RULES), by_order=st.booleans())
def test_the_battles_and_the_account_are_those_of_the_pairings(
    events: list[Event], ties: TieRule, *, by_order: bool
) -> None:
    """A rating depends on the order of battles, and on how prompts are numbered."""
    state = known(*events)
    rule = Rule(CONCATENATE) if by_order else Rule()
    compared: list[Compared] = [*settle(state, everything(state), state.panel[0], rule)]

    found = battles_of(compared)

    require_equal(found.by_outcome(ties), one_by_one(compared, ties))
    assert found.account == account_of(compared)
    assert found.n_judged_prompts == len(
        {each.cluster for each in compared if each.score is not None}
    )


battles = st.builds(
    lambda cluster, pair, status, weight: ComparedBattle(
        "set", f"p{cluster}", cluster, pair[0], pair[1], status, weight
    ),
    st.integers(0, 9),
    st.permutations(["zoe", "amy", "kim"]),
    st.sampled_from(["a", "b", "tie", "no verdict", "inconsistent"]),
    st.sampled_from([0.5, 1.0, 3.0]),
)


@pytest.mark.parametrize("ties", RULES)
@given(compared=st.lists(battles))
def test_imported_battles_keep_their_weights(ties: TieRule, compared: list[ComparedBattle]) -> None:
    """Their prompts have numbers of their own, in any order."""
    found = battles_of(compared)

    require_equal(found.by_outcome(ties), one_by_one([*compared], ties))
    assert found.account == account_of(compared)


@given(parts=st.lists(st.lists(battles), min_size=1, max_size=3))
def test_parts_are_joined_in_order(parts: list[list[ComparedBattle]]) -> None:
    """A long tournament is gone through in sections, and rated whole."""
    every = [each for part in parts for each in part]

    found = joined([battles_of(part) for part in parts])

    assert found.account == account_of(every)
    require_equal(found.by_outcome("half"), one_by_one([*every], "half"))
    columns = found.a.tolist(), found.b.tolist(), found.status.tolist(), found.weight.tolist()
    rows = [
        (found.entrants[a], found.entrants[b], STATUSES[status], weight)
        for a, b, status, weight in zip(*columns, strict=True)
    ]
    shares = [np.nan if each.share is None else each.share for each in every]
    assert found.score.tolist() == pytest.approx(shares, nan_ok=True)
    assert rows == [(each.entrant_a, each.entrant_b, each.status, each.weight) for each in every]
    assert len(np.unique(found.cluster)) == len({each.cluster for each in every})
