"""Bias-reduced covariances are those of the textbook, and say how many clusters count."""

import numpy as np
import pytest
from hypothesis import given

from ledger.events.ratings import IntervalUnit
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import clustered_battles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson
from tests.support.builders.battles import Battle, fitted, in_columns, strengths_covariance
from tests.support.strategies.battles import SOFT, comparable


def likelihood_of(battles: Battles, unit: IntervalUnit) -> Likelihood:
    """Return the likelihood of battles with ties as half."""
    return Likelihood(BradleyTerry(len(battles.entrants)), clustered_battles(battles, unit))


def freedom_of(likelihood: Likelihood, figures: Floats) -> Floats:
    """Return the degrees of freedom of linear functions of strengths."""
    fit = fitted(likelihood)
    wide = np.pad(figures, ((0, 0), (0, len(fit) - figures.shape[1])))
    return likelihood.sandwich(fit).spread_of(wide)[1]


def of_differences(covariances: Floats) -> Floats:
    """Return what a covariance of strengths says about strengths less their mean."""
    n = len(covariances)
    centred = np.eye(n) - 1 / n
    return np.asarray(centred @ covariances @ centred)


def by_the_textbook(battles: Battles, unit: IntervalUnit, theta: Floats) -> Floats:
    """Return CR2 as in Pustejovsky and Tipton (2018), equation 6: one matrix for each cluster.

    The working model is that of the fit: W = diag(w p q), residuals weighted by 1 / (p q).
    """
    groups = battles.cluster if unit == "prompts" else np.arange(len(battles))
    x = np.zeros((len(battles), len(battles.entrants)))  # +1 for a, -1 for b
    x[np.arange(len(battles)), battles.a] = 1
    x[np.arange(len(battles)), battles.b] = -1
    expected = 1 / (1 + np.exp(-x @ theta))
    root = np.sqrt(battles.weight * expected * (1 - expected))
    z = x * root[:, None]
    residual = battles.weight * (battles.score - expected) / root
    bread = np.linalg.pinv(z.T @ z, rcond=1e-10)
    meat = np.zeros_like(bread)
    for group in np.unique(groups):
        own = groups == group
        values, vectors = np.linalg.eigh(np.eye(own.sum()) - z[own] @ bread @ z[own].T)
        adjusted = vectors @ ((vectors.T @ residual[own]) / np.sqrt(values))
        g = z[own].T @ adjusted
        meat += np.outer(g, g)
    return np.asarray(bread @ meat @ bread)


@pytest.mark.parametrize("unit", ["prompts", "battles"])
@given(rows=comparable(scores=SOFT))
def test_it_is_that_of_the_textbook(unit: IntervalUnit, rows: list[Battle]) -> None:
    """Counting what is alike once, what is alone apart, and a power series only save time."""
    battles = in_columns(
        row._replace(prompt=f"{copy} {row.prompt}") for copy in range(3) for row in rows
    )
    likelihood = likelihood_of(battles, unit)
    fit = fitted(likelihood)

    found = of_differences(strengths_covariance(likelihood, fit))

    assert found == pytest.approx(by_the_textbook(battles, unit, fit), rel=1e-6, abs=1e-8)


def test_what_a_cluster_adds_that_decides_nearly_alone_is_bounded() -> None:
    """By the textbook it grows without end, as its weight does: here to a hundred times."""
    battles = in_columns([("a", "b", 1.0, 1, 100.0), ("b", "a", 1.0, 2)])
    likelihood = likelihood_of(battles, "battles")
    fit = fitted(likelihood)

    found = of_differences(strengths_covariance(likelihood, fit))[0, 0]

    expected = by_the_textbook(battles, "battles", fit)[0, 0]
    assert 0.5 * expected < found < 0.9 * expected


def test_ties_inform_of_their_number_and_not_of_the_difference() -> None:
    """Worked by hand: Davidson's log odds are of the decided; leverage is a little less than 1."""
    rows = [("a", "b", score, n) for n, score in enumerate([1.0] * 30 + [0.0] * 20 + [0.5] * 10)]
    likelihood = Likelihood(Davidson(2), clustered_battles(in_columns(rows), "battles"))

    found = strengths_covariance(likelihood, fitted(likelihood))

    variance = found[0, 0] + found[1, 1] - 2 * found[0, 1]
    assert variance == pytest.approx((1 / 30 + 1 / 20) * 60 / 59, rel=0.02)
    assert variance > 1 / 30 + 1 / 20


@pytest.mark.parametrize("model", [BradleyTerry(3), Davidson(3)])
def test_clusters_that_inform_alike_leave_one_degree_of_freedom_less(
    model: BradleyTerry | Davidson,
) -> None:
    """C - 1, as for a mean of C numbers."""
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    scores = [1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.5, 0.0]
    rows = [(a, b, score, n) for n, score in enumerate(scores) for a, b in pairs]
    likelihood = Likelihood(model, clustered_battles(in_columns(rows), "prompts"))

    freedom = freedom_of(likelihood, np.eye(3) - 1 / 3)

    assert freedom == pytest.approx([7.0] * 3)


def test_who_fought_on_few_prompts_has_few_degrees_of_freedom() -> None:
    """A newcomer of 6 prompts, among those of 60."""
    rows = [("a", "b", float(n % 2), n) for n in range(60)]
    rows += [("new", "a", float(n % 2), n) for n in range(6)]
    figures = np.eye(3) - np.array([0.5, 0.5, 0.0])

    _, _, new = freedom_of(likelihood_of(in_columns(rows), "prompts"), figures)

    assert 4.9 < new < 6


def test_a_figure_that_is_fixed_has_no_degrees_of_freedom() -> None:
    """An anchor's rating does not vary."""
    rows = [("a", "b", float(n % 2), n) for n in range(6)]
    freedom = freedom_of(likelihood_of(in_columns(rows), "prompts"), np.zeros((1, 2)))

    assert np.isnan(freedom).all()
