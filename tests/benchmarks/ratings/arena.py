"""Battles as an arena holds them: entrants of normal strengths, a few of which everybody meets."""

from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles

SPREAD: Final = 120.0  # standard deviation of strengths, in Elo points
TIES: Final = 0.15  # share of battles


def round_robin(n_entrants: int, n_prompts: int) -> Battles:
    """Return the battles of all pairs on every prompt."""
    a, b = np.array([*combinations(range(n_entrants), 2)]).T
    prompt = np.repeat(np.arange(n_prompts), len(a))
    return _fought(n_entrants, np.tile(a, n_prompts), np.tile(b, n_prompts), prompt)


def by_popularity(n_entrants: int, n_battles: int) -> Battles:
    """Return battles each on a prompt of its own; the n-th entrant is met 1 / n as often."""
    rng = np.random.default_rng(1)
    popularity = 1 / np.arange(1, n_entrants + 1)
    a = rng.choice(n_entrants, size=n_battles, p=popularity / popularity.sum())
    b = (a + rng.integers(1, n_entrants, size=n_battles)) % n_entrants
    return _fought(n_entrants, a, b, np.arange(n_battles))


def decided(battles: Battles) -> Battles:
    """Leave the ties out."""
    kept = battles.score != 0.5  # a tie
    columns = (battles.a, battles.b, battles.score, battles.cluster, battles.weight)
    return Battles.by_score(battles.entrants, *(column[kept] for column in columns))


def _fought(
    n_entrants: int, a: NDArray[np.intp], b: NDArray[np.intp], prompt: NDArray[np.intp]
) -> Battles:
    rng = np.random.default_rng(2)
    strengths = rng.normal(scale=SPREAD, size=n_entrants)
    a_wins = rng.random(len(a)) < 1 / (1 + 10 ** ((strengths[b] - strengths[a]) / 400))
    score = np.where(rng.random(len(a)) < TIES, 0.5, a_wins)
    names = tuple(f"e{n:03}" for n in range(n_entrants))
    return Battles.by_score(names, a, b, score, prompt, np.ones(len(a)))
