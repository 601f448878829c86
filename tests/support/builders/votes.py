"""Simulated elections: a judge that favours an entrant judges all, people vote on a sample.

An answer has a strength of its own, which judge and people see alike, and they decide alike more
often than by chance; but the judge adds to one entrant whatever it answers.
"""

from itertools import combinations
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from projections.ratings.bradley_terry.rate import rate

ENTRANTS: Final = tuple("abcd")
N_PROMPTS: Final = 143
N_VOTES: Final = 120
FAVOUR: Final = 0.8  # what the judge adds to entrant c, in logits
_STRENGTHS: Final = np.array([-0.45, -0.15, 0.15, 0.45])  # logits
_NORMAL: Final = NormalDist()
_OWN: Final = 0.7  # standard deviation of an answer's own strength
_A, _B = np.array([*combinations(range(len(ENTRANTS)), 2)]).T


class Election(NamedTuple):
    """What the judge judged, with votes on some of it; and the votes alone."""

    voted: VotedBattles
    votes: Battles


def election(seed: int, *, n_votes: int = N_VOTES, alike: float = 0.8) -> Election:
    """Simulate an election.

    Args:
        seed: Of everything.
        n_votes: On battles drawn at random.
        alike: The correlation of what decides for judge and people, beside the answers.
    """
    rng = np.random.default_rng([seed, 17])
    answers = _STRENGTHS + rng.normal(scale=_OWN, size=(N_PROMPTS, len(ENTRANTS)))
    gap = answers[:, _A] - answers[:, _B]
    favour = FAVOUR * ((_A == 2).astype(float) - (_B == 2))
    mood = rng.normal(size=gap.shape)
    other = alike * mood + np.sqrt(1 - alike**2) * rng.normal(size=gap.shape)
    human = (_chance_of(mood) < _win(gap)).astype(np.float64).ravel()
    judge = (_chance_of(other) < _win(gap + favour)).astype(np.float64).ravel()
    chosen = np.isin(np.arange(human.size), rng.choice(human.size, n_votes, replace=False))
    judged = _battles(judge)
    return Election(
        VotedBattles(judged, np.where(chosen, human, np.nan), n_votes, n_unmatched=0),
        _battles(human).take(chosen),
    )


def true_ratings() -> Floats:
    """Return people's Bradley-Terry ratings over endless prompts, (n_entrants,)."""
    nodes, weights = np.polynomial.hermite.hermgauss(80)
    usual = _STRENGTHS[_A] - _STRENGTHS[_B]
    scores = _win(usual[:, None] + 2 * _OWN * nodes) @ (weights / weights.sum())
    pairs = Battles.by_score(ENTRANTS, _A, _B, scores, np.arange(len(_A)), np.ones(len(_A)))
    return rate(pairs, BradleyTerryParameters()).rating


def _win(gap: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-gap)))


def _chance_of(normal: Floats) -> Floats:
    """Return the uniform number that belongs to a normal one."""
    return np.array([[_NORMAL.cdf(each) for each in row] for row in normal])


def _battles(scores: Floats) -> Battles:
    a, b = np.tile(_A, N_PROMPTS), np.tile(_B, N_PROMPTS)
    prompt = np.repeat(np.arange(N_PROMPTS), len(_A))
    names = tuple(f"p{number}" for number in range(N_PROMPTS))
    return Battles.by_score(ENTRANTS, a, b, scores, prompt, np.ones(scores.size), names)
