"""Covariances and resamples; `tests.benchmarks.ratings` measures how often intervals are right."""

from math import inf, nan

import numpy as np
import pytest

from ledger.events.ratings import BradleyTerryParameters, IntervalUnit
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import (
    Bootstrap,
    bootstrap_strengths,
    freedom_of_differences,
    percentile_uncertainty,
    percentiles,
)
from projections.ratings.bradley_terry.evidence import Support, clustered_battles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson, PairModel
from tests.support.builders.battles import fitted, in_columns, strengths_covariance

SCORES = [1.0] * 30 + [0.0] * 20 + [0.5] * 10
PAIRS = [("a", "b"), ("b", "c"), ("c", "a")]
ROWS = [(a, b, score, n // 3) for n, score in enumerate(SCORES) for a, b in PAIRS]


def draws_of(likelihood: Likelihood, kind: Bootstrap, *, resamples: int = 2000) -> Floats:
    """Return the strengths of resamples, less their mean."""
    rng = np.random.default_rng(4)
    draws = bootstrap_strengths(likelihood, fitted(likelihood), kind, resamples=resamples, rng=rng)
    return np.asarray(draws - draws.mean(axis=1, keepdims=True))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("kind", "unit", "model"),
    [("bayesian", "prompts", BradleyTerry(3)), ("multinomial", "battles", Davidson(3))],
)
def test_its_spread_is_that_of_the_closed_form(
    kind: Bootstrap, unit: IntervalUnit, model: PairModel
) -> None:
    """Two ways to the same errors: each is the other's check, to what 2,000 draws can say."""
    likelihood = Likelihood(model, clustered_battles(in_columns(ROWS), unit))
    centred = np.eye(3) - 1 / 3

    errors = draws_of(likelihood, kind).std(axis=0)

    closed = centred @ strengths_covariance(likelihood, fitted(likelihood)) @ centred
    assert errors == pytest.approx(np.sqrt(closed.diagonal()), rel=0.1)


def test_bayesian_resamples_always_have_a_fit() -> None:
    """No weight is 0, so nobody loses a last win; of multinomial resamples many have none."""
    rows = [("a", "b", 1.0, 1), ("b", "a", 1.0, 2), ("b", "c", 1.0, 3), ("c", "a", 0.5, 4)]
    likelihood = Likelihood(BradleyTerry(3), clustered_battles(in_columns(rows), "prompts"))

    bayesian = draws_of(likelihood, "bayesian", resamples=200)
    multinomial = draws_of(likelihood, "multinomial", resamples=200)

    assert np.isfinite(bayesian).all()
    assert 0.2 < np.isnan(multinomial).any(axis=1).mean() < 0.95
    assert np.isnan(multinomial).any(axis=1).tolist() == np.isnan(multinomial).all(axis=1).tolist()


def test_a_resample_that_lost_all_ties_still_rates() -> None:
    """Davidson's nu is 0 then, which no step of log nu reaches; strengths do not wait for it."""
    rows = [("a", "b", score, n) for n, score in enumerate([1.0] * 30 + [0.0] * 20 + [0.5])]
    likelihood = Likelihood(Davidson(2), clustered_battles(in_columns(rows), "battles"))

    draws = draws_of(likelihood, "multinomial", resamples=100)

    assert np.isfinite(draws).all()


@pytest.mark.parametrize(("n_without", "expected"), [(2, (0.0, 97.0)), (3, (-inf, inf))])
def test_resamples_without_a_fit_are_beyond_both_bounds(
    n_without: int, expected: tuple[float, float]
) -> None:
    """They are where data say least; without them an interval would look too sure."""
    draws = np.array([*range(100 - n_without), *[nan] * n_without]).reshape(-1, 1)

    bounds = percentiles(draws, 0.95)

    assert tuple(float(bound[0]) for bound in bounds) == expected


def test_few_clusters_have_wider_percentiles() -> None:
    """Of 6 clusters t is 2.571 and the spread sqrt(6 / 5) too small: 2.816 for 1.96 of normals."""
    draws = np.random.default_rng(3).normal(size=(200_000, 1))

    support, parameters = Support(np.array([6]), np.ones(1)), BradleyTerryParameters()
    found = percentile_uncertainty(("a",), draws, np.array([[5.0]]), support, parameters)

    assert found.upper[0] == pytest.approx(2.5706 * np.sqrt(6 / 5), abs=0.05)
    assert found.lower[0] == pytest.approx(-2.5706 * np.sqrt(6 / 5), abs=0.05)


def test_a_difference_has_the_freedom_of_who_is_less_sure() -> None:
    """A newcomer of 6 prompts beside one of 400; and equals have that of either."""
    found = freedom_of_differences(np.array([4000.0, 4.0, 4000.0]), np.array([5.0, 399.0, 5.0]))

    assert found[0, 1] == pytest.approx(5.0, abs=0.1)
    assert found[0, 2] == pytest.approx(5.0)
    assert found.diagonal() == pytest.approx([5.0, 399.0, 5.0])
