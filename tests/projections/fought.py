"""Battles as a test tells them, and what is fitted to them."""

from collections.abc import Mapping
from typing import Final

from projections.battles.columns import Battle
from projections.intervals import Floats
from projections.ratings.bradley_terry._likelihood import Likelihood

Pair = tuple[str, str]


def beaten(*pairs: Pair) -> list[Battle]:
    """Return battles in which the first of each pair beat the second, on prompts 1, 2, 3 ..."""
    return [Battle(a, b, 1.0, prompt) for prompt, (a, b) in enumerate(pairs, start=1)]


RING: Final = beaten(("a", "b"), ("b", "c"), ("c", "a"))


def played(games: Mapping[Pair, tuple[int, int, int]]) -> list[Battle]:
    """Return battles, each on a prompt of its own, by how often the first won, lost and tied."""
    scores = {
        pair: [1.0] * won + [0.0] * lost + [0.5] * tied for pair, (won, lost, tied) in games.items()
    }
    flat = [(pair, score) for pair, each in scores.items() for score in each]
    return [Battle(a, b, score, number) for number, ((a, b), score) in enumerate(flat)]


def fitted(likelihood: Likelihood) -> Floats:
    """Return the fit, of which there is one."""
    fit = likelihood.fit()
    assert fit is not None
    return fit
