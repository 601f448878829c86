"""Whether intervals hold the truth as often as they say, where prompts have minds of their own."""

from itertools import combinations
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters, IntervalKind
from projections.battles import Battles
from projections.ratings import rate

N_ENTRANTS: Final = 4
N_PROMPTS: Final = 143
STRENGTHS: Final = np.array([-0.6, -0.2, 0.2, 0.6])
OWN: Final = 2.0  # standard deviation of an answer's own strength, on its prompt
A, B = np.array([*combinations(range(N_ENTRANTS), 2)]).T


def tournament(scores: NDArray[np.float64]) -> Battles:
    """Return the battles of all pairs on each prompt, given (n_prompts, n_pairs) scores."""
    n_prompts, n_pairs = scores.shape
    a, b = np.tile(A, n_prompts), np.tile(B, n_prompts)
    prompt = np.repeat(np.arange(n_prompts), n_pairs)
    return Battles(tuple("abcd"), a, b, scores.ravel(), prompt, np.ones(scores.size))


def truth() -> NDArray[np.float64]:
    """Return the ratings of endless prompts, of which each pair has its expected score."""
    nodes, weights = np.polynomial.hermite.hermgauss(40)
    lead = (STRENGTHS[A] - STRENGTHS[B])[:, None] + 2 * OWN * nodes  # sqrt(2) * sqrt(2) * OWN
    scores = (weights / (1 + np.exp(-lead))).sum(axis=1) / weights.sum()
    return rate(tournament(scores[None, :]), BradleyTerryParameters()).rating


def coverage(n_tournaments: int, parameters: BradleyTerryParameters) -> float:
    """Return the share of intervals that hold the truth."""
    rng = np.random.default_rng(2026)
    true, held = truth(), 0
    for _ in range(n_tournaments):
        own = STRENGTHS + rng.normal(scale=OWN, size=(N_PROMPTS, N_ENTRANTS))
        chances = 1 / (1 + np.exp(own[:, B] - own[:, A]))
        scores = (rng.random(chances.shape) < chances).astype(np.float64)
        ratings = rate(tournament(scores), parameters)
        held += ((ratings.lower <= true) & (true <= ratings.upper)).sum()
    return float(held / (n_tournaments * N_ENTRANTS))


@pytest.mark.parametrize("interval", ["sandwich", "bayesian"])
def test_intervals_over_prompts_hold_the_truth_as_often_as_they_say(
    interval: IntervalKind,
) -> None:
    """95 % of them, to what 300 tournaments can tell."""
    assert 0.93 <= coverage(300, BradleyTerryParameters(interval=interval, resamples=200)) <= 0.97


def test_intervals_over_battles_hold_it_too_rarely() -> None:
    """Battles of one prompt share its answers; who takes them for independent is too sure."""
    assert coverage(300, BradleyTerryParameters(unit="battles")) < 0.93
