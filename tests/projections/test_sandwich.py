"""The sandwich covariance, clustered by unit."""

import numpy as np
import pytest
from hypothesis import given

from ledger.events.ratings import IntervalUnit
from projections.battles.columns import Battle, Battles, battles_of
from projections.intervals import Floats
from projections.ratings.bradley_terry._davidson import Davidson
from projections.ratings.bradley_terry._likelihood import Likelihood
from projections.ratings.bradley_terry.evidence import clustered_battles
from projections.ratings.bradley_terry.models import BradleyTerry
from projections.ratings.bradley_terry.uncertainty import covariance
from tests.projections.battle_strategies import SOFT, comparable
from tests.projections.fought import fitted


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
