"""Juries whose biases are known, and the pairs that they judge."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from projections.battles.soft_scores import sigma
from projections.intervals import Floats
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.ratings.judge_bias.several_judges import Families

ENTRANTS: Final = ("ann", "bob", "cat", "dan", "eve")
_STRENGTHS: Final = np.array([0.6, 0.3, 0.0, -0.4, -0.5])
_LONGER: Final = np.array([0.0, 0.2, 0.4, 0.6, 0.8])  # the weaker, the longer, in log characters
FAMILIES: Final = Families(
    dict(zip(ENTRANTS, ("Claude", "Llama", "Qwen", "GPT", "OLMo"), strict=True)),
    {"claude": "Claude", "sonnet": "Claude", "gpt": "GPT", "human": None, "owl": None},
)


class Juror(NamedTuple):
    """A judge, and how it departs from one that sees what is there."""

    name: str = "owl"
    says_a: float = 0.0  # how often it says A without looking
    slope: float = 0.0  # log odds of length, which is from -1 to 1
    own: float = 0.0  # log odds that ann, of Claude's family, gains
    skill: float = 1.0


def judged(rng: np.random.Generator, jury: Sequence[Juror], *, n_prompts: int = 100) -> JudgedPairs:
    """Draw what a jury says of every pair of five entrants' responses, in both orders."""
    pairs = np.array([*combinations(range(len(ENTRANTS)), 2)])
    prompt = np.repeat(np.arange(n_prompts), len(pairs))
    a, b = np.tile(pairs, (n_prompts, 1)).T
    size = np.exp(_LONGER + 0.5 * rng.normal(size=(n_prompts, len(ENTRANTS))))
    longer = (size[prompt, a] - size[prompt, b]) / (size[prompt, a] + size[prompt, b])
    gap, is_own = _STRENGTHS[a] - _STRENGTHS[b], (a == 0).astype(np.float64) - (b == 0)
    forward, swapped = zip(
        *(
            _verdicts(rng, each.skill * gap + each.slope * longer + each.own * is_own, each.says_a)
            for each in jury
        ),
        strict=True,
    )
    n = len(jury)
    return JudgedPairs(
        ENTRANTS,
        tuple(each.name for each in jury),
        a=np.tile(a, n),
        b=np.tile(b, n),
        judge=np.repeat(np.arange(n), len(a)),
        prompt=np.tile(prompt, n),
        pair=np.tile(np.arange(len(a)), n),
        forward=np.concatenate(forward),
        swapped=np.concatenate(swapped),
        style={"length": np.tile(longer, n)},
    )


def _verdicts(rng: np.random.Generator, log_odds: Floats, says_a: float) -> tuple[Floats, Floats]:
    """Draw what a takes in either order; who does not look says A, which is b in the second."""
    chance, n = sigma(log_odds), len(log_odds)
    looked = rng.random((2, n)) >= says_a
    won = (rng.random((2, n)) < chance).astype(np.float64)
    return np.where(looked[0], won[0], 1.0), np.where(looked[1], won[1], 0.0)
