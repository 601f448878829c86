"""Battles in columns are the battles one by one."""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import TieRule
from ledger.events.registry import Event
from projections.battles.columns import STATUSES, TIE, Battles, battles_of, joined
from projections.tournament.compared import ComparedBattle
from projections.tournament.settlement import Compared, account_of, settle
from projections.verdicts.policies import CONCATENATE, Rule
from tests.support.builders.battles import in_columns
from tests.support.builders.events import known
from tests.support.builders.worlds import everything
from tests.support.strategies.tournaments import tournament_histories


def test_some_battles_are_taken_by_a_mask_or_by_place() -> None:
    """Names and numbers stay what they are, so that parts of a table can be compared."""
    battles = in_columns([("zoe", "amy", 1.0, "p7"), ("amy", "kim", 0.5, "p2")])

    masked, placed = battles.take(np.array([False, True])), battles.take(np.array([1, 1]))

    assert (masked.entrants, masked.prompts) == (battles.entrants, battles.prompts)
    assert (masked.a.tolist(), masked.b.tolist(), masked.score.tolist()) == ([0], [1], [0.5])
    assert (placed.cluster.tolist(), placed.weight.tolist()) == ([1, 1], [1.0, 1.0])


def test_prompts_that_are_the_same_are_one_cluster() -> None:
    """Under the name of the first; prompts without an id stay apart."""
    battles = in_columns([("amy", "zoe", 1.0, name) for name in ("p1", "p2", "p3", "p4")])
    nameless = replace(battles, prompts=("p1", "p2"))

    same: dict[Hashable, Hashable] = {"p1": "p1", "p2": "p1", "p3": "p3"}
    found = battles.grouped(same)

    assert (found.prompts, found.cluster.tolist()) == (("p1", "p3", "p4"), [0, 0, 1, 2])
    assert nameless.grouped(same).cluster.tolist() == [0, 0, 1, 2]
    assert nameless.grouped({}).cluster.tolist() == battles.cluster.tolist()


def test_battles_without_a_prompt_id_keep_their_clusters() -> None:
    """They need not be of the same prompt."""
    battles = in_columns([("amy", "zoe", 1.0, name) for name in ("p1", "p2", "p3")])
    nameless = replace(battles, prompts=(None, "p2", None))

    found = nameless.grouped({})

    assert (found.prompts, found.cluster.tolist()) == ((None, "p2", None), [0, 1, 2])


RULES: tuple[TieRule, ...] = ("drop", "half")


def one_by_one(compared: list[Compared], ties: TieRule) -> Battles:
    """Return the battles that count, as their definition says; prompts by the first's id."""
    names: dict[Hashable, str | None] = {
        each.cluster: each.prompt_id for each in reversed(compared)
    }
    found = in_columns(
        (each.entrant_a, each.entrant_b, score, each.cluster, _weight_of_match(each))
        for each in compared
        if (score := each.score) is not None and (score != TIE or ties == "half")
    )
    return replace(found, prompts=tuple(names[each] for each in found.prompts))


def _weight_of_match(each: Compared) -> float:
    """A pair is one match, also where it was asked in one order."""
    return 1.0 if each.counted == "pairs" else each.weight


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
