"""Simulated elections: a judge that favours an entrant judges all, people vote on a sample.

An answer has a strength of its own, which judge and people see alike, and they decide alike more
often than by chance; but the judge adds to one entrant whatever it answers.
"""

from itertools import combinations
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from projections.battles.columns import Battles
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from tests.support.builders.battles import all_met, of_endless_prompts

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
    human = (_chance_of(mood) < _win(gap)).astype(np.float64)
    judge = (_chance_of(other) < _win(gap + favour)).astype(np.float64)
    chosen = np.isin(np.arange(human.size), rng.choice(human.size, n_votes, replace=False))
    votes = np.where(chosen, human.ravel(), np.nan)
    return Election(
        VotedBattles(all_met(ENTRANTS, judge), votes, n_votes, n_unmatched=0),
        all_met(ENTRANTS, human).take(chosen),
    )


def true_ratings() -> Floats:
    """Return people's Bradley-Terry ratings over endless prompts, (n_entrants,)."""
    return of_endless_prompts(ENTRANTS, _STRENGTHS, 2**0.5 * _OWN, _win)


def _win(gap: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-gap)))


def _chance_of(normal: Floats) -> Floats:
    """Return the uniform number that belongs to a normal one."""
    return np.array([[_NORMAL.cdf(each) for each in row] for row in normal])
