"""What both models of paired comparisons promise: derivatives that are those of their chances."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles, clustered_battles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson, PairModel
from tests.support.builders.battles import Battle, in_columns
from tests.support.strategies.battles import any_battles, comparable

STEP = 1e-4
STRENGTHS = st.lists(st.floats(-2, 2), min_size=6, max_size=6).map(np.array)


def log_chance(model: PairModel, battle: tuple[int, int, float], at: Floats) -> float:
    """Return the logarithm of the chance of a battle, as the papers have it."""
    a, b, score = battle
    pi, other, nu = exp(at[a]), exp(at[b]), exp(at[-1]) if isinstance(model, Davidson) else 0.0
    total = pi + other + nu * (pi * other) ** 0.5
    if isinstance(model, Davidson) and score == 0.5:
        return log(nu * (pi * other) ** 0.5 / total)
    return score * log(pi / total) + (1 - score) * log(other / total)


def counted(model: PairModel, units: ClusteredBattles) -> Floats:
    """Return the counts of all battles, (1, *shape)."""
    return Likelihood(model, units).counts(units.count.astype(np.float64)[None, :])


def log_likelihood(model: PairModel, units: ClusteredBattles, at: Floats) -> float:
    """Return the logarithm of the chance of all battles."""
    rows = zip(units.a, units.b, units.score, units.weight, units.unit, strict=True)
    return sum(
        float(units.count[unit] * weight) * log_chance(model, (a, b, score), at)
        for a, b, score, weight, unit in rows
    )


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@given(rows=comparable(), drawn=STRENGTHS)
def test_derivatives_are_those_of_the_log_likelihood(
    kind: type[BradleyTerry] | type[Davidson], rows: list[Battle], drawn: Floats
) -> None:
    """A wrong gradient rates wrongly; a wrong second derivative gives wrong intervals only."""
    units = clustered_battles(in_columns(rows), "battles")
    model = kind(units.n_entrants)
    at = drawn[-model.n_parameters :]
    differentiate = model.derivatives(counted(model, units))
    steps = np.eye(model.n_parameters) * STEP

    gradient, information = (each[0] for each in differentiate(at[None, :]))

    slope = [
        log_likelihood(model, units, at + step) - log_likelihood(model, units, at - step)
        for step in steps
    ]
    bend = differentiate(at - steps).gradient - differentiate(at + steps).gradient
    assert gradient == pytest.approx(np.array(slope) / (2 * STEP), abs=1e-5)
    assert information == pytest.approx(bend / (2 * STEP), abs=1e-5)


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@given(rows=comparable(), drawn=STRENGTHS)
def test_the_scores_of_battles_add_up_to_the_gradient(
    kind: type[BradleyTerry] | type[Davidson], rows: list[Battle], drawn: Floats
) -> None:
    """Intervals are made of single battles' scores, ratings of counts: both must be one model."""
    units = clustered_battles(in_columns(rows), "battles")
    model = kind(units.n_entrants)
    at = drawn[-model.n_parameters :]
    counts = counted(model, units)

    slope, of_battles = model.scores(at, units)

    number, k = units.count[units.unit], model.n_parameters
    columns = np.zeros((len(number), slope.shape[1], k))  # how a battle's columns are parameters
    every = np.arange(len(number))
    columns[every, 0, units.a], columns[every, 0, units.b] = 1.0, -1.0
    columns[:, 1:, units.n_entrants :] = np.eye(k - units.n_entrants)
    gradient = (number[:, None] * (slope[:, None, :] @ columns)[:, 0]).sum(axis=0)
    information = (number[:, None, None] * (columns.swapaxes(1, 2) @ of_battles @ columns)).sum(
        axis=0
    )
    expected = model.derivatives(counts)(at[None, :])
    assert gradient == pytest.approx(expected.gradient[0], abs=1e-9)
    assert information == pytest.approx(expected.information[0], abs=1e-9)


@pytest.mark.parametrize("kind", [BradleyTerry, Davidson])
@pytest.mark.parametrize("prior", [False, True])
@given(rows=any_battles(min_size=1), data=st.data())
def test_several_counts_have_fits_or_not_each_by_itself(
    kind: type[BradleyTerry] | type[Davidson],
    rows: list[Battle],
    data: st.DataObject,
    *,
    prior: bool,
) -> None:
    """Resamples are tried many at a time, and one without a fit must not spoil its neighbours."""
    units = clustered_battles(in_columns(rows), "battles")
    numbers = st.lists(st.integers(0, 1), min_size=len(units.count), max_size=len(units.count))
    drawn = np.array(data.draw(st.lists(numbers, min_size=1, max_size=5)), dtype=np.float64)
    model = kind(units.n_entrants)
    counts = Likelihood(model, units).counts(drawn)

    together = model.has_fit(counts, prior=prior)

    assert together.tolist() == [model.has_fit(each[None], prior=prior)[0] for each in counts]


@given(rows=comparable())
def test_a_prior_and_davidsons_ties_ask_no_more_than_bradley_and_terry(rows: list[Battle]) -> None:
    """A prior always gives a fit to who has wins; ties as an outcome can only take one away."""
    units = clustered_battles(in_columns(rows), "battles")
    half, davidson = BradleyTerry(units.n_entrants), Davidson(units.n_entrants)

    assert half.has_fit(counted(half, units), prior=False).all()
    assert half.has_fit(counted(half, units), prior=True).all()
    assert davidson.has_fit(counted(davidson, units), prior=True).all()
