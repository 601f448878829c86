"""Covariances and resamples: whether intervals hold the truth as often as they say.

That is quick here, and told with a margin; `tests.benchmarks.ratings.coverage` measures it.
"""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given

from ledger.events.ratings import BradleyTerryParameters, IntervalKind, IntervalUnit
from projections.battles.columns import Battle, Battles, battles_of
from projections.intervals import Floats
from projections.ratings.bradley_terry._davidson import Davidson, PairModel
from projections.ratings.bradley_terry.evidence import clustered_battles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry
from projections.ratings.bradley_terry.uncertainty import (
    Bootstrap,
    bootstrap_strengths,
    covariance,
    percentiles,
)
from tests.support.builders.battles import bradley_terry, coverage, fitted, tournaments, truth
from tests.support.strategies.battles import SOFT, comparable

SCORES = [1.0] * 30 + [0.0] * 20 + [0.5] * 10
PAIRS = [("a", "b"), ("b", "c"), ("c", "a")]
ROWS = [(a, b, score, n // 3) for n, score in enumerate(SCORES) for a, b in PAIRS]


def draws_of(likelihood: Likelihood, kind: Bootstrap, *, resamples: int = 2000) -> Floats:
    """Return the strengths of resamples, less their mean."""
    rng = np.random.default_rng(4)
    draws = bootstrap_strengths(likelihood, fitted(likelihood), kind, resamples=resamples, rng=rng)
    return np.asarray(draws - draws.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["bayesian", "multinomial"])
@pytest.mark.parametrize("unit", ["prompts", "battles"])
@pytest.mark.parametrize("model", [BradleyTerry(3), Davidson(3)])
def test_its_spread_is_that_of_the_closed_form(
    kind: Bootstrap, unit: IntervalUnit, model: PairModel
) -> None:
    """Two ways to the same errors: each is the other's check, to what 2,000 draws can say."""
    likelihood = Likelihood(model, clustered_battles(battles_of(ROWS), unit))
    centred = np.eye(3) - 1 / 3

    errors = draws_of(likelihood, kind).std(axis=0)

    closed = centred @ covariance(likelihood, fitted(likelihood)) @ centred
    assert errors == pytest.approx(np.sqrt(closed.diagonal()), rel=0.1)


@pytest.mark.parametrize("kind", ["bayesian", "multinomial"])
def test_a_prior_is_drawn_too(kind: Bootstrap) -> None:
    """An entrant of whom there is next to no battle must be as unsure as the prior is."""
    rows = [("a", "b", 1.0, 1), ("b", "a", 1.0, 2)]
    units = clustered_battles(battles_of([*rows, ("c", "a", 1.0, 3, 1e-6)]), "battles")
    likelihood = Likelihood(BradleyTerry(3), units, precision=1 / 0.5**2)
    centred = np.eye(3) - 1 / 3

    errors = draws_of(likelihood, kind).std(axis=0)

    closed = centred @ covariance(likelihood, fitted(likelihood)) @ centred
    assert errors[2] == pytest.approx(np.sqrt(closed[2, 2]), rel=0.1)
    assert errors[2] > 0.35


def test_bayesian_resamples_always_have_a_fit() -> None:
    """No weight is 0, so nobody loses a last win; of multinomial resamples many have none."""
    rows = [("a", "b", 1.0, 1), ("b", "a", 1.0, 2), ("b", "c", 1.0, 3), ("c", "a", 0.5, 4)]
    likelihood = Likelihood(BradleyTerry(3), clustered_battles(battles_of(rows), "prompts"))

    bayesian = draws_of(likelihood, "bayesian", resamples=200)
    multinomial = draws_of(likelihood, "multinomial", resamples=200)

    assert np.isfinite(bayesian).all()
    assert 0.2 < np.isnan(multinomial).any(axis=1).mean() < 0.95
    assert np.isnan(multinomial).any(axis=1).tolist() == np.isnan(multinomial).all(axis=1).tolist()


def test_a_resample_that_lost_all_ties_still_rates() -> None:
    """Davidson's nu is 0 then, which no step of log nu reaches; strengths do not wait for it."""
    rows = [("a", "b", score, n) for n, score in enumerate([1.0] * 30 + [0.0] * 20 + [0.5])]
    likelihood = Likelihood(Davidson(2), clustered_battles(battles_of(rows), "battles"))

    draws = draws_of(likelihood, "multinomial", resamples=100)

    assert np.isfinite(draws).all()


def test_an_interval_leaves_out_as_many_below_as_above() -> None:
    """Of 1,000 draws and 90 % fifty at either end, though 1 - 0.9 is a little less than 0.1."""
    draws = np.random.default_rng(1).permutation(np.arange(1000.0)).reshape(-1, 1)

    lower, upper = percentiles(draws, 0.9)

    assert (lower.tolist(), upper.tolist()) == ([50.0], [949.0])


@pytest.mark.parametrize(("n_without", "expected"), [(2, (0.0, 97.0)), (3, (-inf, inf))])
def test_resamples_without_a_fit_are_beyond_both_bounds(
    n_without: int, expected: tuple[float, float]
) -> None:
    """They are where data say least; without them an interval would look too sure."""
    draws = np.array([*range(100 - n_without), *[nan] * n_without]).reshape(-1, 1)

    bounds = percentiles(draws, 0.95)

    assert (bounds.lower.tolist(), bounds.upper.tolist()) == ([expected[0]], [expected[1]])


@pytest.mark.parametrize("interval", ["sandwich", "bayesian", "multinomial"])
def test_intervals_over_prompts_hold_the_truth_as_often_as_they_say(
    interval: IntervalKind,
) -> None:
    """95 % of them, to what 150 tournaments can tell."""
    parameters = BradleyTerryParameters(interval=interval, resamples=200)

    found = coverage(bradley_terry(tournaments(150), parameters), truth())

    assert 0.92 <= found.share <= 0.98


def test_intervals_over_battles_hold_it_too_rarely() -> None:
    """Battles of one prompt share its answers; who takes them for independent is too sure."""
    drawn = tournaments(200, own=2.0)

    found = coverage(bradley_terry(drawn, BradleyTerryParameters(unit="battles")), truth(own=2.0))

    assert found.share < 0.93


def by_the_textbook(battles: Battles, unit: IntervalUnit, theta: Floats) -> Floats:
    """Return pinv(H) G'G pinv(H) C / (C - 1), G having a row for each of C units."""
    groups = battles.cluster if unit == "prompts" else np.arange(len(battles))
    difference = np.zeros((len(battles), len(battles.entrants)))  # +1 for a, -1 for b
    difference[np.arange(len(battles)), battles.a] = 1
    difference[np.arange(len(battles)), battles.b] = -1
    expected = 1 / (1 + np.exp(-difference @ theta))
    scores = difference * (battles.weight * (battles.score - expected))[:, None]
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    g = np.add.reduceat(scores[order], starts, axis=0)
    spread = battles.weight * expected * (1 - expected)
    bread = np.linalg.pinv(difference.T @ (difference * spread[:, None]), rcond=1e-10)
    return np.asarray(bread @ g.T @ g @ bread * len(g) / (len(g) - 1))


def of_differences(covariances: Floats) -> Floats:
    """Return what a covariance of strengths says about strengths less their mean."""
    n = len(covariances)
    centred = np.eye(n) - 1 / n
    return np.asarray(centred @ covariances @ centred)


def likelihood_of(battles: Battles, unit: IntervalUnit) -> Likelihood:
    """Return the likelihood of battles with ties as half."""
    return Likelihood(BradleyTerry(len(battles.entrants)), clustered_battles(battles, unit))


@pytest.mark.parametrize("unit", ["prompts", "battles"])
@given(rows=comparable(scores=SOFT))
def test_it_is_that_of_the_textbook(unit: IntervalUnit, rows: list[Battle]) -> None:
    """Counting what is alike once, and what is alone apart, only saves time."""
    battles = battles_of(rows)
    likelihood = likelihood_of(battles, unit)
    fit = fitted(likelihood)

    found = of_differences(covariance(likelihood, fit))

    assert found == pytest.approx(by_the_textbook(battles, unit, fit), rel=1e-6, abs=1e-8)


def test_thousands_of_prompts_of_many_entrants_add_up() -> None:
    """They are added up in blocks, so that memory does not grow with them."""
    rng = np.random.default_rng(8)
    n, n_battles = 200, 21_000
    a = rng.integers(n, size=n_battles)
    b = (a + rng.integers(1, n, size=n_battles)) % n
    score, prompt = rng.integers(2, size=n_battles).astype(np.float64), np.arange(n_battles) // 2
    names = tuple(f"{i:03}" for i in range(n))
    battles = Battles(names, a, b, score, prompt, np.ones(n_battles))
    likelihood = likelihood_of(battles, "prompts")
    fit = fitted(likelihood)

    found = of_differences(covariance(likelihood, fit))

    assert found == pytest.approx(by_the_textbook(battles, "prompts", fit), rel=1e-6, abs=1e-8)


def test_prompts_that_move_together_leave_less_evidence() -> None:
    """Ten copies of a battle are ten battles, and one prompt."""
    scores = [1.0, 1.0, 0.0, 1.0, 0.0]
    rows = [("a", "b", score, n) for n, score in enumerate(scores) for _ in range(10)]

    variance = {
        unit: of_differences(covariance(each, fitted(each)))[0, 0]
        for unit in ("prompts", "battles")
        for each in [likelihood_of(battles_of(rows), unit)]
    }

    allowances = (5 / 4) / (50 / 49)
    assert variance["prompts"] / variance["battles"] == pytest.approx(10 * allowances)


def test_the_error_of_a_log_odds_is_that_of_its_counts() -> None:
    """Worked by hand: 1 / won + 1 / lost, and Davidson's for the decided; ties are C, not p."""
    rows = [("a", "b", score, n) for n, score in enumerate([1.0] * 30 + [0.0] * 20 + [0.5] * 10)]
    units = clustered_battles(battles_of(rows), "battles")
    likelihood = Likelihood(Davidson(2), units)

    found = covariance(likelihood, fitted(likelihood))

    variance = found[0, 0] + found[1, 1] - 2 * found[0, 1]
    assert variance == pytest.approx((1 / 30 + 1 / 20) * 60 / 59)
