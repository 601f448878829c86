"""Intervals of Elo ratings: the bootstrap over prompts, or its limit for very many battles.

A rating's derivative by how often each prompt is drawn gives its standard error as the bootstrap
does, of which it is the limit for many prompts (the infinitesimal jackknife: Jaeckel 1972).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from ledger.identity import Json
from projections.battles.columns import Battles
from projections.intervals import FEWEST_CLUSTERS, Floats, portable_critical_value
from projections.ratings.elo.rate import MOST_RESAMPLED, NO_TIME, PER_POINT, EloRatings, information
from projections.ratings.elo.season import Numbers, outcomes_of, play_all

BOOTSTRAPS: Final = 400  # resamples where nobody asks for another number: right to 4 %
LEVEL: Final = 0.95
INTERVAL: Final[Mapping[str, Json]] = {"kind": "bootstrap", "unit": "prompts", "level": LEVEL}
"""What kind of interval it is."""

_N_SEASONS: Final = 2  # of each resample: their difference shows what noise orders leave
_ROUNDING: Final = 1e-12  # squared Elo points: less is no difference
_SECOND_STREAM: Final = (1,)  # of a seed; the permutations are its first


@dataclass(frozen=True)
class EloBootstrap:
    """The bootstrap over prompts, or its limit: standard errors of the entrants, in order of id."""

    n_resamples: int  # 0: computed from each prompt's influence
    n_prompts: int
    standard_error: Floats  # (n_entrants,) Elo points; NaN where prompts do not differ

    def interval(self, ratings: Floats, n_prompts: NDArray[np.intp]) -> Floats:
        """Return (n_entrants, 2) bounds: rating +- t standard errors, which is 95 %.

        t is Student's, of one degree of freedom less than prompts (Hesterberg 2015).

        Args:
            ratings: (n_entrants,).
            n_prompts: (n_entrants,) on which each met another. On fewer than FEWEST_CLUSTERS there
                are no bounds: NaN.
        """
        t = portable_critical_value(LEVEL, n_prompts.astype(np.float64) - 1)
        half = np.where(n_prompts < FEWEST_CLUSTERS, np.nan, t * self.standard_error)
        return np.stack([ratings - half, ratings + half], axis=1)

    def sentence(self) -> str:
        """Describe the interval in a sentence."""
        if not self.n_resamples:
            return f"95 % interval by the influence of each of {self.n_prompts} prompts"
        return f"95 % interval by {self.n_resamples} resamples of {self.n_prompts} prompts"

    def fields(self) -> dict[str, Json]:
        """Describe the interval as JSON."""
        kind = {} if self.n_resamples else {"kind": "infinitesimal jackknife"}
        return {**INTERVAL, **kind, "n_resamples": self.n_resamples, "n_prompts": self.n_prompts}


def uncertainty(
    battles: Battles,
    ratings: EloRatings,
    parameters: EloParameters,
    *,
    n_prompts: int | None = None,
    most_resampled: int = MOST_RESAMPLED,
) -> EloBootstrap | None:
    """Bootstrap the ratings; of very many battles, compute what it would find in the limit.

    Args:
        battles: As for `bootstrap`.
        ratings: Those under the K of the parameters.
        parameters: K, number of resamples, seed. Without resamples there is no uncertainty.
        n_prompts: As for `bootstrap`.
        most_resampled: The number of battles above which the uncertainty is computed, to six
            digits, so that every processor finds the same.

    Returns:
        None where nothing can vary: with fewer than two prompts or resamples.
    """
    n_judged = _n_judged(battles, parameters, n_prompts)
    if n_judged is None:
        return None
    if len(battles) <= most_resampled:
        resampled = bootstrap(battles, parameters, k=parameters.k, n_prompts=n_prompts)
    else:
        variance = variances(battles, ratings.traces, k=parameters.k, n_prompts=n_judged)
        resampled = EloBootstrap(0, n_judged, np.round(_error(variance), 6))
    if resampled is None or battles.widening == 1:
        return resampled
    return replace(resampled, standard_error=battles.widening * resampled.standard_error)


def bootstrap(
    battles: Battles,
    parameters: EloParameters,
    *,
    k: float,
    n_prompts: int | None = None,
) -> EloBootstrap | None:
    """Bootstrap the ratings by resampling prompts, with m seasons for each resample.

    Let V be the variance over resamples of the mean of their seasons, W the mean over resamples of
    the variance among their seasons. The orders add W / m to V, which is subtracted; and n prompts
    drawn with replacement vary by (n - 1) / n too little, which is corrected:

        standard error^2 = n / (n - 1) (V - W / m)

    Args:
        battles: The battles; a cluster is a prompt.
        parameters: Number of resamples, seed.
        k: The K factor.
        n_prompts: How many were judged; those without a battle here, since all of their pairs tied
            and ties are dropped, are drawn too: another bank would have more of them, or fewer.
            None: those with a battle.

    Returns:
        None where nothing can vary: with fewer than two prompts or resamples.
    """
    n_judged = _n_judged(battles, parameters, n_prompts)
    if n_judged is None:
        return None
    seasons = _seasons(battles, n_judged, parameters, k)
    over_resamples = seasons.mean(axis=1).var(axis=0, ddof=1)
    of_orders = seasons.var(axis=1, ddof=1).mean(axis=0) / _N_SEASONS
    variance = n_judged / (n_judged - 1) * (over_resamples - of_orders)
    return EloBootstrap(parameters.bootstraps, n_judged, _error(variance))


def _n_judged(battles: Battles, parameters: EloParameters, n_prompts: int | None) -> int | None:
    """Return how many prompts were judged; None where nothing can vary."""
    n_met = int(np.count_nonzero(np.bincount(battles.cluster)))
    if min(n_met, parameters.bootstraps) < 2:  # noqa: PLR2004  # one has no spread
        return None
    return max(n_met, n_prompts or 0)


def _error(variance: Floats) -> Floats:
    return np.sqrt(np.where(variance > _ROUNDING, variance, np.nan))


def _seasons(battles: Battles, n_prompts: int, parameters: EloParameters, k: float) -> Floats:
    """Return ratings, (n_resamples, m, n_entrants).

    A season goes round its order one and a half times, and its rating is a weighted mean over the
    last round: this removes most of the noise of the order.
    """
    (outcomes, numbers), half = outcomes_of(battles), len(battles) // 2
    prompt = np.unique(battles.cluster, return_inverse=True)[1]
    rng = np.random.default_rng(np.random.SeedSequence(parameters.seed, spawn_key=_SECOND_STREAM))

    def orders() -> Iterator[Numbers]:
        for _ in range(parameters.bootstraps):
            prompts = rng.integers(n_prompts, size=n_prompts)
            drawn = np.repeat(numbers, np.bincount(prompts, minlength=n_prompts)[prompt])
            for _ in range(_N_SEASONS):
                yield np.resize(rng.permutation(drawn), len(drawn) + half if len(drawn) else 0)

    last, n_steps = _about_the_end(half), len(battles) + half
    ratings = play_all(outcomes, orders(), n_steps, ks=(k,), last=last)
    return ratings.reshape(parameters.bootstraps, _N_SEASONS, -1)


def _about_the_end(half: int) -> list[float]:
    """Return weights of the last round, half of which comes after the end of the first.

    The mean over h battles before and after that end differs from the rating there by c h^2, and
    terms of h^4, where K is so small that ratings still grow. Two means, over h and over r h,
    give the rating without c h^2: (mean of r h - r^2 mean of h) / (1 - r^2) (Richardson 1911).
    """
    inner = max(1, half // 2)
    means = np.full((2, 2 * half), 1 / (2 * half))
    means[1] = np.where(np.abs(np.arange(2 * half) - (half - 0.5)) < inner, 1 / (2 * inner), 0.0)
    ratio = (inner / half) ** 2 if inner < half else 0.0
    return [*((means[1] - ratio * means[0]) / (1 - ratio)).tolist()]


def variances(battles: Battles, ratings: Floats, *, k: float, n_prompts: int) -> Floats:
    """Return the variance of the mean rating over prompts, (n_entrants,) squared Elo points.

    Let E be a battle's expected score, the mean over orders of play, and L d the sum over battles
    by which expected scores answer to a change d of ratings. A prompt drawn once more adds the sum
    h of S - E over its battles to a round, in which ratings follow d' = K (h - L d). So they move
    by u = L^-1 (1 - e^(-K L)) h in one round, and with n prompts

        standard error^2 = n / (n - 1) sum over prompts (u - mean u)^2

    Args:
        battles: The battles; a cluster is a prompt.
        ratings: (n_orders, n_entrants) Elo ratings at the end of each order, which scatter by
            about sqrt(K / 0.0115) points: so E is not the expected score at their mean.
        k: The K factor.
        n_prompts: How many were judged; those without a battle here move nothing.
    """
    _, prompt = np.unique(battles.cluster, return_inverse=True)
    expected, slope = _expected(battles, ratings)
    surprise = battles.score - expected
    rate, modes = np.linalg.eigh(k * information(battles, slope))
    late = np.maximum(rate, NO_TIME)
    gained = -np.expm1(-late) / late  # of what would be gained if nothing decayed
    responses = (modes * (k * gained)) @ modes.T  # of each rating to the sums of S - E of all
    moved = (
        np.bincount(prompt, surprise * (row[battles.a] - row[battles.b]), minlength=n_prompts)
        for row in responses
    )
    return np.array([n_prompts**2 / (n_prompts - 1) * influence.var() for influence in moved])


def _expected(battles: Battles, ratings: Floats) -> tuple[Floats, Floats]:
    """Return a's expected score and its derivative by the gap, (n,) each, the means over orders."""
    met, place = np.unique(battles.a * len(battles.entrants) + battles.b, return_inverse=True)
    a, b = np.divmod(met, len(battles.entrants))
    score, slope = np.zeros((2, len(met)))
    for order in ratings:
        of_a = 0.5 + 0.5 * np.tanh(0.5 * PER_POINT * (order[a] - order[b]))
        score += of_a
        slope += PER_POINT * of_a * (1.0 - of_a)
    return score[place] / len(ratings), slope[place] / len(ratings)
