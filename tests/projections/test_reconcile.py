"""From both orders' verdicts to one outcome."""

from itertools import product

import pytest

from ledger.events.judging import Outcome, Verdict
from projections.verdicts.policies import DEFAULT_POLICY, POLICIES, swap_consistent

TABLE: list[tuple[Verdict, Verdict, Outcome]] = [
    ("A", "B", "a"),
    ("B", "A", "b"),
    ("TIE", "TIE", "tie"),
    ("A", "A", "inconsistent"),
    ("B", "B", "inconsistent"),
    ("A", "TIE", "inconsistent"),
    ("B", "TIE", "inconsistent"),
    ("TIE", "A", "inconsistent"),
    ("TIE", "B", "inconsistent"),
]
MIRRORED: dict[Outcome, Outcome] = {"a": "b", "b": "a"}


@pytest.mark.parametrize(("forward", "swapped", "outcome"), TABLE)
def test_outcomes_equal_the_customers_table(
    forward: Verdict, swapped: Verdict, outcome: Outcome
) -> None:
    """A judge that prefers a slot, not a response, must never decide a match."""
    assert swap_consistent(forward, swapped) == outcome


def test_the_table_has_every_pair_of_verdicts() -> None:
    """A tenth case would be a verdict that nobody decided how to read."""
    verdicts: tuple[Verdict, ...] = ("A", "B", "TIE")

    pairs = {(forward, swapped) for forward, swapped, _ in TABLE}

    assert pairs == set(product(verdicts, repeat=2))


@pytest.mark.parametrize(("forward", "swapped", "outcome"), TABLE)
def test_swapping_both_orders_only_swaps_the_winner(
    forward: Verdict, swapped: Verdict, outcome: Outcome
) -> None:
    """Which entrant the roster lists first must not matter to who wins."""
    assert swap_consistent(swapped, forward) == MIRRORED.get(outcome, outcome)


def test_the_default_policy_is_found_by_its_name() -> None:
    """Outcomes name their policy, and an audit applies it again by that name."""
    policy = POLICIES[DEFAULT_POLICY]

    assert [policy(forward, swapped) for forward, swapped, _ in TABLE] == [
        outcome for *_, outcome in TABLE
    ]
