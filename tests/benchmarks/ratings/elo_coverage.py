"""How often 95 % intervals of Elo and of shares hold the truth, by K and by how many tie.

Those of Elo both as they are found of most tournaments, and as of very many battles.

The truth is the mean over all tournaments, as Elo estimates what so many battles make of strengths.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec.structs import replace

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.intervals import Floats, RatioTerms, estimate_ratio
from projections.ratings.elo.rate import MOST_RESAMPLED, prompts_met, rate
from projections.ratings.elo.uncertainty import uncertainty
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row, between, stated
from tests.support.builders.battles import N_PROMPTS, coverage, draw_tournaments

_N_TOURNAMENTS: Final = 400
_KS: Final = (1.0, 4.0, 16.0, 32.0)
_TIES: Final[Mapping[str, float]] = MappingProxyType({"0 %": 0.0, "30 %": 1.0, "60 %": 3.6})
"""Davidson's nu by the share of ties that it makes."""
_ELO: Final = EloParameters(permutations=300, bootstraps=200)
_HONEST: Final = between(0.94, 0.96)


def measure(bench: Bench) -> Iterator[Row]:
    """Rate tournaments of 143 prompts, ties dropped; find the share of each pair, ties as half."""
    n = bench.scaled(_N_TOURNAMENTS, at_least=2)
    for share, nu in _TIES.items():
        drawn = [*draw_tournaments(n, n_prompts=N_PROMPTS, ties=nu)]
        decided = [each.take(each.score != 0.5) for each in drawn]  # a tie
        for k in _KS:
            for way, bounds, means in _of_elo(decided, k):
                yield _row(f"Elo by {way}, K = {k:g}, {share} ties", bounds, means)
        yield _row(f"win shares, {share} ties", *_of_shares(drawn))


def _row(name: str, intervals: Floats, values: Floats) -> Row:
    found = coverage(intervals, values.mean(axis=0))
    figure = f"{found.share:.1%} +- {found.error:.1%}"
    return stated(f"95 % intervals that hold the truth: {name}", figure, found.share, _HONEST)


def _of_elo(drawn: Sequence[Battles], k: float) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield intervals, (n, n_entrants, 2), and ratings; by resamples, and by influence."""
    elo = replace(_ELO, k=k)
    rated = [rate(each, elo, [k])[k] for each in drawn]
    means = np.array([each.mean() for each in rated])
    for way, most_resampled in (("resamples", MOST_RESAMPLED), ("influence", 0)):
        found = (
            uncertainty(*each, elo, n_prompts=N_PROMPTS, most_resampled=most_resampled)
            for each in zip(drawn, rated, strict=True)
        )
        bounds = [
            errors.interval(mean, prompts_met(each))
            for each, mean, errors in zip(drawn, means, found, strict=True)
            if errors is not None
        ]
        yield way, np.array(bounds), means


def _of_shares(drawn: Sequence[Battles]) -> tuple[Floats, Floats]:
    """Return intervals of each pair's share, (n, n_pairs, 2), and the shares."""
    one, prompts = np.ones(N_PROMPTS), [str(n) for n in range(N_PROMPTS)]
    found = [
        [estimate_ratio(RatioTerms(scores, one), prompts, "share") for scores in by_pair]
        for by_pair in (each.score.reshape(N_PROMPTS, -1).T for each in drawn)
    ]
    bounds = [[(each.low, each.high) for each in row] for row in found]
    values = [[each.value for each in row] for row in found]
    return np.array(bounds, dtype=np.float64), np.array(values, dtype=np.float64)
