"""A planted gap between two entrants is found, whatever slot the judge prefers.

A judge says A with a chance of sigma(d + b) in one order and of sigma(d - b) in the other, where b
is its preference for slot A. Each order's verdict counts by itself, so ratings estimate the log
odds of the mean of both chances: that is the gap that is planted here, 261 Elo points. Without a
preference it is d, 1.5; with one it is less than d, as mean chances lie closer to a half.
"""

from collections.abc import Iterable
from functools import cache
from math import exp, log

import numpy as np
import pytest

from ledger.events.judging import Verdict
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension
from projections.battles.columns import battles_of
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.leaderboard import pairs
from projections.ratings.tournament import by_dimension
from projections.results.ratings import BradleyTerryPair
from projections.tournament.settlement import Settlement
from projections.verdicts.policies import outcome_of_order, swap_consistent
from tests.support.builders.events import entrant, known, opened, prompt
from tests.support.builders.worlds import answered, settled
from tests.support.statistics import holds

GAP = 1.5  # log odds, 261 Elo points


@cache
def unjudged(n_prompts: int) -> tuple[Settlement, ...]:
    """Return the pairs of alpha and beta, who answered so many prompts."""
    prompts = [prompt(f"p{n}") for n in range(n_prompts)]
    opening = opened(prompts=prompts, entrants=[entrant("alpha"), entrant("beta")])
    return settled(known(*answered(opening)))


def judged(pair: Settlement, forward: Verdict, swapped: Verdict) -> Settlement:
    """Return a pair with the outcome of two verdicts."""
    said = outcome_of_order(forward, "forward"), outcome_of_order(swapped, "swapped")
    outcome = swap_consistent(forward, swapped)
    return pair._replace(status=outcome, said=said if outcome == "inconsistent" else ())


def sigma(log_odds: float) -> float:
    """Return the chance that log odds mean."""
    return 1 / (1 + exp(-log_odds))


def strength_for(gap: float, preference: float) -> float:
    """Return d by bisection: the mean of both orders' chances has the log odds of the gap."""
    low, high = 0.0, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        mean = (sigma(middle + preference) + sigma(middle - preference)) / 2
        low, high = (middle, high) if log(mean / (1 - mean)) < gap else (low, middle)
    return low


def rated(seed: int, preference: float, n_prompts: int) -> BradleyTerryPair:
    """Return the difference of alpha and beta by a judge whose verdicts are drawn."""
    strength = strength_for(GAP, preference)
    won = np.random.default_rng(seed).random((n_prompts, 2)) < [
        sigma(strength + preference),
        sigma(strength - preference),
    ]
    return difference_of(
        judged(pair, "A" if first else "B", "B" if second else "A")
        for pair, (first, second) in zip(unjudged(n_prompts), won, strict=True)
    )


def difference_of(group: Iterable[Settlement]) -> BradleyTerryPair:
    """Return the difference of alpha and beta by what became of their pairs."""
    columns = {Dimension("factuality"): battles_of([*group])}
    [board] = by_dimension(columns, BradleyTerryParameters(), ())
    [found] = pairs(board.ratings)
    return found


def n_holding(preference: float, n_seeds: int, n_prompts: int) -> int:
    """Return in how many tournaments the interval of the difference holds the planted gap."""
    return sum(has(rated(seed, preference, n_prompts), GAP) for seed in range(n_seeds))


def has(found: BradleyTerryPair, gap: float) -> bool:
    """Say whether an interval of alpha's lead holds a gap in log odds."""
    points = gap * ELO if found.entrant_a == "alpha" else -gap * ELO
    return holds(found.low, points, found.high)


@pytest.mark.no_cover
@pytest.mark.parametrize("preference", [0.0, 0.75])
def test_the_planted_gap_is_found_by_day(preference: float) -> None:
    """Left out, the pairs whose orders disagree would double it: 12 intervals would hold none."""
    assert n_holding(preference, n_seeds=6, n_prompts=60) >= 5


@pytest.mark.nightly
@pytest.mark.parametrize("preference", [0.0, 0.75])
def test_the_planted_gap_is_in_as_many_intervals_as_they_say(preference: float) -> None:
    """Of 100 tournaments of 300 prompts."""
    assert 93 <= n_holding(preference, n_seeds=100, n_prompts=300) <= 97


N_SAMPLES = 3
OF_PROMPT, OF_SAMPLE = 1.2, 0.6  # standard deviations in log odds


@cache
def sampled(*, are_known: bool) -> tuple[Settlement, ...]:
    """Return the pairs on three samples of forty prompts; not known, each seems a prompt."""
    prompts = [
        prompt(f"p{n}#{sample}", text=f"Question {n}?" if are_known else f"Question {n}, {sample}?")
        for n in range(40)
        for sample in range(N_SAMPLES)
    ]
    opening = opened(
        prompts=prompts, entrants=[entrant(name, temperature=1.0) for name in ("alpha", "beta")]
    )
    return settled(known(*answered(opening)))


def n_holding_samples(*, are_known: bool) -> int:
    """Return in how many of 200 tournaments the interval holds the gap over prompts and samples."""
    rng = np.random.default_rng(2026)
    spread = np.hypot(OF_PROMPT, OF_SAMPLE)
    chance = np.mean([sigma(0.5 + each) for each in rng.normal(0, spread, 400_000)])
    gap, n_held = log(chance / (1 - chance)), 0
    for _ in range(200):
        shifts = np.repeat(rng.normal(0, OF_PROMPT, 40), N_SAMPLES)
        shifts += rng.normal(0, OF_SAMPLE, len(shifts))
        group = (
            judged(pair, *(("A", "B") if rng.random() < sigma(0.5 + shift) else ("B", "A")))
            for pair, shift in zip(sampled(are_known=are_known), shifts, strict=True)
        )
        n_held += has(difference_of(group), gap)
    return n_held


@pytest.mark.nightly
def test_samples_of_a_prompt_are_one_prompt_to_an_interval() -> None:
    """Taken for prompts of their own, the intervals would be too narrow."""
    assert 186 <= n_holding_samples(are_known=True) <= 194  # 93 to 97 %
    assert n_holding_samples(are_known=False) < 182
