"""Simulated cascades: a cheap judge on all prompts, a strong one on a random share of them.

An answer has a strength of its own on each prompt, two answers beside each other look better or
worse than alone, and the first slot is preferred a little. The cheap judge favours some entrants,
and decides as the strong one does more often than by chance.
"""

from functools import cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from projections.battles.columns import Battles
from projections.battles.voted import VotedBattles
from projections.intervals import Floats
from tests.support.builders.battles import all_met, of_endless_prompts

ENTRANTS: Final = tuple("abcdef")
N_PROMPTS: Final = 143
CHEAP_PRICE: Final = 1 / 40  # of the strong judge's
SHARE: Final = 1 / 3 - CHEAP_PRICE  # so that both cost a third of the strong judge's full cost
_STRENGTHS: Final = np.array([-1.2, -0.7, -0.2, 0.3, 0.6, 1.2])  # logits
_FAVOUR: Final = np.array([0.0, 0.6, -0.3, 0.0, -0.6, 0.3])  # what the cheap judge adds
_OWN: Final = 0.75  # standard deviation of an answer's own strength, in logits
_BESIDE: Final = 0.5  # likewise of two answers beside each other
_SLOT: Final = 0.3  # what the first slot gains
_TIE: Final = 0.5  # within so much both are equal
_A, _B = np.array([*combinations(range(len(ENTRANTS)), 2)]).T


class Cascade(NamedTuple):
    """What both judges judged, and what the same money buys of the strong one alone."""

    voted: VotedBattles
    alone: Battles  # by the strong judge, on a third of the prompts


def cascade(
    seed: int, *, alike: float, n_prompts: int = N_PROMPTS, share: float = SHARE
) -> Cascade:
    """Simulate a cascade.

    Args:
        seed: Of everything.
        alike: How often the same chance decides for both judges.
        n_prompts: That the cheap judge judges.
        share: Of them, that the strong judge judges, too.
    """
    rng = np.random.default_rng([seed, 42])
    answers = _STRENGTHS + rng.normal(scale=_OWN, size=(n_prompts, len(ENTRANTS)))
    gap = answers[:, _A] - answers[:, _B] + rng.normal(scale=_BESIDE, size=(n_prompts, len(_A)))
    mood, own = rng.logistic(size=(2, 2, *gap.shape))  # of both orders
    other = np.where(rng.random(own.shape) < alike, mood, own)
    strong = _score(gap, mood)
    cheap = _score(gap + _FAVOUR[_A] - _FAVOUR[_B], other)
    drawn = rng.random(n_prompts)
    has_vote = np.repeat(drawn < share, len(_A))
    human = np.where(has_vote, strong.ravel(), np.nan)
    voted = VotedBattles(all_met(ENTRANTS, cheap), human, int(has_vote.sum()), n_unmatched=0)
    return Cascade(voted, all_met(ENTRANTS, strong).take(np.repeat(drawn < 1 / 3, len(_A))))


@cache
def strong_ratings() -> Floats:
    """Return the strong judge's Bradley-Terry ratings over endless prompts, (n_entrants,)."""

    def score(gap: Floats) -> Floats:
        places = [gap + slot + tie for slot in (_SLOT, -_SLOT) for tie in (_TIE, -_TIE)]
        return np.asarray(np.mean([1 / (1 + np.exp(-each)) for each in places], axis=0))

    return of_endless_prompts(ENTRANTS, _STRENGTHS, (2 * _OWN**2 + _BESIDE**2) ** 0.5, score)


def _score(gap: Floats, mood: Floats) -> Floats:
    """Return the mean score of a pair over both orders, (n_prompts, n_pairs)."""
    slot = np.array([_SLOT, -_SLOT])[:, None, None]
    seen = gap + slot + mood
    return np.asarray(np.mean(0.5 + 0.5 * np.sign(seen) * (np.abs(seen) > _TIE), axis=0))
