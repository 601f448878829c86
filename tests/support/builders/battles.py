"""Battles that others held, that a test tells, and that are simulated; what is fitted to them.

In simulated tournaments all pairs of four entrants meet on each prompt, and what is peculiar to an
answer is in all three of its battles. So battles of one prompt are no independent evidence; and as
chances are averaged over prompts, Bradley-Terry strengths come out nearer to each other than what
is put in.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from ledger.events.imports import BattlesImported, CodedColumn, encode_cells
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battle, Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.rate import rate
from tests.support.builders.events import key


def imported_battles(
    a: Sequence[str] = ("x",), b: Sequence[str] = ("y",), **fields: object
) -> BattlesImported:
    """Return battles of a against b, in their order; without more fields people preferred a."""
    entrants = tuple(dict.fromkeys((*a, *b)))
    event = BattlesImported(
        file_digest=key("file"),
        format="plain",
        mapping_version=1,
        chunk=1,
        n_skipped=0,
        entrants=entrants,
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=CodedColumn(("model_a",)),
        prefs=CodedColumn((None,)),
        prompts=CodedColumn((None,)),
        sources=CodedColumn(("human",)),
        judges=CodedColumn((None,)),
        weights=CodedColumn((1.0,)),
    )
    return replace(event, **fields)


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


N_PROMPTS: Final = 143
STRENGTHS: Final = np.array([-0.6, -0.2, 0.2, 0.6])  # logits
OWN: Final = 1.0  # standard deviation of an answer's own strength, in logits
_TIES: Final = 0.5  # Davidson's nu: a sixth of the battles are ties
_A, _B = np.array([*combinations(range(len(STRENGTHS)), 2)]).T


class Coverage(NamedTuple):
    """The share of intervals that hold the truth, and its standard error."""

    share: float
    error: float


def tournaments(n: int, *, n_prompts: int = N_PROMPTS, own: float = OWN) -> list[Battles]:
    """Return the battles of n tournaments, always the same."""
    rng = np.random.default_rng(2026)
    return [_tournament(rng, n_prompts, own) for _ in range(n)]


def truth(*, own: float = OWN) -> Floats:
    """Return the Bradley-Terry ratings of endless prompts, (n_entrants,).

    There each pair scores what is expected of it: the integral over the difference of two answers'
    own strengths, which is normal of variance 2 own^2, by Gauss and Hermite.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(60)
    usual = STRENGTHS[_A] - STRENGTHS[_B]
    win, tie = _chances(usual[:, None] + 2 * own * nodes)  # sqrt(2 variance) = 2 own
    scores = (win + tie / 2) @ (weights / weights.sum())
    return rate(_battles(scores[None, :]), BradleyTerryParameters()).rating


def coverage(intervals: Floats, true: Floats) -> Coverage:
    """Count the intervals that hold the truth.

    The ratings of one tournament err together, so the standard error is of tournaments' shares.

    Args:
        intervals: (n_tournaments, n_entrants, 2) bounds.
        true: (n_entrants,).
    """
    held = (intervals[:, :, 0] <= true) & (true <= intervals[:, :, 1])
    shares = held.mean(axis=1)
    return Coverage(float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(len(shares))))


def bradley_terry(drawn: list[Battles], parameters: BradleyTerryParameters) -> Floats:
    """Return the intervals of each tournament, (n_tournaments, n_entrants, 2)."""
    rated = [rate(battles, parameters) for battles in drawn]
    return np.array([np.stack([each.lower, each.upper], axis=1) for each in rated])


def _tournament(rng: np.random.Generator, n_prompts: int, own: float) -> Battles:
    answers = STRENGTHS + rng.normal(scale=own, size=(n_prompts, len(STRENGTHS)))
    win, tie = _chances(answers[:, _A] - answers[:, _B])
    drawn = rng.random(win.shape)
    return _battles(np.where(drawn < win, 1.0, np.where(drawn < win + tie, 0.5, 0.0)))


def _chances(lead: Floats) -> tuple[Floats, Floats]:
    """Return how probably one that is so much stronger wins, and ties (Davidson 1970)."""
    up, down = np.exp(lead / 2), np.exp(-lead / 2)
    total = up + down + _TIES
    return up / total, _TIES / total


def _battles(scores: Floats) -> Battles:
    """Return the battles of all pairs on each prompt, given (n_prompts, n_pairs) scores."""
    n_prompts, n_pairs = scores.shape
    a, b = np.tile(_A, n_prompts), np.tile(_B, n_prompts)
    prompt = np.repeat(np.arange(n_prompts), n_pairs)
    return Battles(tuple("abcd"), a, b, scores.ravel(), prompt, np.ones(scores.size))
