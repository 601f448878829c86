"""Critical values of looks are those of published tables, and never spend more than there is."""

from collections.abc import Sequence
from itertools import combinations
from math import inf, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from projections.ratings.boundaries import (
    ALPHA,
    Contrasts,
    Schedule,
    Spending,
    critical_values,
    gradual,
    late,
    levels,
    mixture,
)
from tests.support.builders.looks import FOUR_LOOKS

NORMAL = NormalDist()
N_DRAWS = 150_000


def of_equals(n: int) -> Contrasts:
    """Return the differences of all pairs of so many entrants that met equally often."""
    a, b = np.array([*combinations(range(n), 2)]).T
    return Contrasts(np.eye(n), a, b, np.full(len(a), sqrt(2)))


PAIR = of_equals(2)


def each_side(alpha: float) -> Spending:
    """Return what is spent if each side of a test spends for itself, as gsDesign's sfLDOF."""
    return lambda t: 4 - 4 * NORMAL.cdf(NORMAL.inv_cdf(1 - alpha / 4) / sqrt(t))


def z_of(levels: Sequence[float]) -> list[float]:
    """Return the critical values of |z| that intervals of these levels stand for."""
    return [NORMAL.inv_cdf((1 + level) / 2) for level in levels]


def test_any_number_of_looks_needs_more_evidence_at_each() -> None:
    """By the normal mixture; at any number of times equals exceed it as rarely as 1.96 at one."""
    found = critical_values(PAIR, Schedule((0.05, 0.5, 1.0), is_open_ended=True), n_draws=N_DRAWS)

    assert found == pytest.approx([mixture(share, 1.96) for share in (0.05, 0.5, 1.0)], abs=0.03)
    assert found[0] > found[1]
    assert min(found) > 2.7
    rng = np.random.default_rng(7)
    sums = rng.standard_normal((4_000, 400)).cumsum(axis=1)
    shares = np.arange(1, 401) / 400
    beyond = np.array([mixture(share, 1.96) for share in shares])
    assert (np.abs(sums) / np.sqrt(400 * shares) >= beyond).any(axis=1).mean() <= 0.05


def test_levels_are_those_of_published_critical_values() -> None:
    """Of two-sided tests at 5 %, of four looks and of two: gsDesign's sfLDOF."""
    four, two = (z_of(levels(shares, each_side(ALPHA))) for shares in (FOUR_LOOKS, (0.5, 1.0)))

    assert four == pytest.approx([4.333, 2.963, 2.359, 2.014], abs=0.0006)
    assert two == pytest.approx([2.963, 1.969], abs=0.0006)


@pytest.mark.parametrize("shares", [FOUR_LOOKS, (0.3, 0.35, 0.9, 1.0), (0.5, 0.998, 1.0), (1.0,)])
def test_either_end_of_an_interval_is_wrong_at_some_look_as_rarely_as_allowed(
    shares: tuple[float, ...],
) -> None:
    """Counted in draws of growing evidence; by each look, what may be spent by then is spent."""
    steps = np.diff((0.0, *shares)) ** 0.5
    drawn = np.random.default_rng(3).standard_normal((400_000, len(shares))) * steps
    z = drawn.cumsum(axis=1) / np.sqrt(shares)

    is_wrong = np.abs(z) > z_of(levels(shares))

    by_each_look = np.logical_or.accumulate(is_wrong, axis=1).mean(axis=0)
    assert by_each_look == pytest.approx([gradual(share) for share in shares], abs=0.0012)


@pytest.mark.no_cover
@pytest.mark.parametrize("shares", [FOUR_LOOKS, (0.3, 0.35, 0.9, 1.0), (1.0,)])
def test_critical_values_of_one_difference_are_those_of_its_levels(
    shares: tuple[float, ...],
) -> None:
    """They are simulated: of so many draws, the first of four looks finds 27 by late spending."""
    found = critical_values(PAIR, Schedule(shares), n_draws=N_DRAWS)

    wanted = z_of(levels(shares, late))
    assert found[1:] == pytest.approx(wanted[1:], abs=0.05)
    assert found[0] == pytest.approx(wanted[0], abs=0.35)
    assert found[-1] == pytest.approx(wanted[-1], abs=0.02)


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (4, [4.29, 3.28, 2.87, 2.66, 2.56]),
        pytest.param(20, [5.04, 4.14, 3.80, 3.64, 3.54], marks=pytest.mark.nightly),
    ],
)
def test_critical_values_of_all_pairs_are_larger(n: int, wanted: Sequence[float]) -> None:
    """Those of four looks and of a single one; the first look finds 8 of 100,000 draws."""
    found = [
        *critical_values(of_equals(n), Schedule(FOUR_LOOKS)),
        *critical_values(of_equals(n), Schedule((1.0,))),
    ]

    assert found[0] == pytest.approx(wanted[0], abs=0.25)
    assert found[1:] == pytest.approx(wanted[1:], abs=0.05)


def test_fewer_differences_need_less() -> None:
    """So that a step-down test decides no less than one of all pairs."""
    every = of_equals(4)
    few = every.take(np.arange(6) < 3)

    of_few, of_all = (critical_values(each, Schedule(FOUR_LOOKS, (4.3,))) for each in (few, every))

    assert of_few[0] == of_all[0] == 4.3
    assert all(one < other for one, other in zip(of_few[1:], of_all[1:], strict=True))


def test_a_look_that_may_spend_nothing_yet_finds_nothing() -> None:
    """Of twenty looks the first could find one of a million millions."""
    critical = critical_values(PAIR, Schedule(np.linspace(0.05, 1, 20).tolist()))

    assert critical[0] == inf
    assert critical[-1] < 2.2


def test_looks_at_a_bank_that_grew_spend_what_is_left() -> None:
    """Half was there, which is a quarter of what there is now: too much was spent by then."""
    early = critical_values(PAIR, Schedule(FOUR_LOOKS), n_draws=N_DRAWS)[:2]
    grown = (0.125, 0.25, 0.625, 1.0)

    found, as_planned = (
        critical_values(PAIR, Schedule(grown, taken), n_draws=N_DRAWS) for taken in (early, ())
    )

    assert found[:2] == early
    assert found[2] > as_planned[2]
    assert found[3] == pytest.approx(as_planned[3], abs=0.04)


@pytest.mark.parametrize("shares", [(0.2, 0.4, 0.6, 0.8, 1.0), (0.05, 0.1, 0.15, 0.2, 0.6)])
def test_what_is_spent_is_spent_for_good(shares: Sequence[float]) -> None:
    """Evidence that comes after the last look finds next to nothing, however much it is."""
    taken = critical_values(PAIR, Schedule(FOUR_LOOKS))

    assert critical_values(PAIR, Schedule(shares, taken))[-1] > 3.5


def test_all_looks_together_find_a_difference_among_equals_as_often_as_allowed() -> None:
    """Counted in other draws than those that the critical values are from."""
    critical = critical_values(of_equals(4), Schedule(FOUR_LOOKS))
    rng = np.random.default_rng(1)
    walk, is_found = np.zeros((200_000, 4)), np.zeros(200_000, dtype=np.bool_)

    for share, value in zip(FOUR_LOOKS, critical, strict=True):
        walk += rng.normal(scale=0.5, size=walk.shape)
        reach = (walk.max(axis=1) - walk.min(axis=1)) / sqrt(2 * share)
        is_found |= reach >= value

    assert is_found.mean() == pytest.approx(ALPHA, abs=0.003)
