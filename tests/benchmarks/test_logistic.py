"""What Bradley-Terry is measured against rates the same."""

import numpy as np
import pytest

from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.fit import ELO
from projections.ratings.bradley_terry.rate import rate
from tests.benchmarks.arena import round_robin
from tests.benchmarks.logistic import fit


def test_the_competitor_finds_the_same_ratings() -> None:
    """A ratio to something that fits another model would say nothing."""
    battles = round_robin(4, 50)
    every, twice = np.arange(len(battles)), np.full(len(battles), 2.0)

    strengths = fit(battles, every, twice)

    points = 1000 + ELO * (strengths - strengths.mean())
    ratings = rate(battles, BradleyTerryParameters()).rating
    assert points.tolist() == pytest.approx(ratings.tolist(), abs=0.01)
