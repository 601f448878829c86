"""Ratings against those of other programs, which are imported where they are needed: it is slow."""

from importlib import import_module

import numpy as np
import pytest
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters, TieModel
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.fit import ELO
from projections.ratings.bradley_terry.rate import rate

EXACT = 1e-6  # Elo points


def drawn(seed: int, *, n: int = 8, n_battles: int = 600) -> Battles:
    """Return random battles, a fifth of them ties."""
    rng = np.random.default_rng(seed)
    a = rng.integers(n, size=n_battles)
    b = (a + rng.integers(1, n, size=n_battles)) % n
    score = (rng.random(n_battles) < 1 / (1 + np.exp((b - a) / 4))).astype(np.float64)
    score[rng.random(n_battles) < 0.2] = 0.5
    names = tuple(f"e{i}" for i in range(n))
    return Battles(names, a, b, score, np.arange(n_battles), np.ones(n_battles))


def points(strengths: NDArray[np.float64]) -> list[float]:
    """Return strengths as Elo points with mean 1000."""
    return [*(1000 + ELO * (strengths - strengths.mean()))]


@pytest.mark.parametrize(("ties", "engine"), [("half", "bradley_terry"), ("davidson", "newman")])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ratings_are_those_of_evalica(ties: TieModel, engine: str, seed: int) -> None:
    """It goes another way, fixed points; Newman's model of ties is Davidson's with nu = 2 v."""
    evalica = import_module("evalica")
    battles = drawn(seed)
    sides = ([battles.entrants[i] for i in side] for side in (battles.a, battles.b))
    winners = [evalica.Winner(int(1 + (score == 0) - (score == 0.5))) for score in battles.score]

    ratings = rate(battles, BradleyTerryParameters(ties=ties))

    theirs = getattr(evalica, engine)(*sides, winners, tolerance=1e-13, limit=10_000)
    assert ratings.rating.tolist() == pytest.approx(
        points(np.log(theirs.scores.sort_index().to_numpy())), abs=EXACT
    )
    assert ratings.nu.tolist() == pytest.approx([2 * getattr(theirs, "v", 0)], abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ratings_are_the_coefficients_of_a_weighted_logistic_regression(seed: int) -> None:
    """So arenas compute them: each battle is a row won by its score and one lost by the rest."""
    linear_model = import_module("sklearn.linear_model")
    battles = drawn(seed)
    rows = np.zeros((len(battles), len(battles.entrants)))
    rows[np.arange(len(battles)), battles.a] = 1
    rows[np.arange(len(battles)), battles.b] = -1
    regression = linear_model.LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12
    )

    ratings = rate(battles, BradleyTerryParameters())

    regression.fit(
        np.concatenate((rows, rows))[:, 1:],  # the first strength is 0
        np.repeat([1, 0], len(battles)),
        np.concatenate((battles.score, 1 - battles.score)),
    )
    theirs = np.concatenate(([0.0], regression.coef_[0]))
    assert ratings.rating.tolist() == pytest.approx(points(theirs), abs=EXACT)
