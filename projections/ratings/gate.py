"""A candidate beside a baseline: not worse, better, worse, or not enough evidence.

Not worse: the lower bound of the candidate's lead is above -margin (non-inferiority, as in trials:
Piaggio et al. 2012). Worse: the upper bound is below 0. Where both hold, the candidate is worse by
less than the margin, and passes. The interval is that of one difference, of 95 %: an error either
way is made in at most 2.5 % of looks. Who looks again after each few prompts errs more often.

One that won or lost every battle has no rating. Then the bounds are those of the share that the
candidate took of the two's own battles (Wilson's), as Elo points.
"""

from math import inf, isfinite, log, nan
from typing import Final, Literal, TypeAlias

import numpy as np

from projections.battles.columns import Battles
from projections.intervals import FEWEST_CLUSTERS, LEVEL, RatioTerms, estimate_ratio, known
from projections.ratings.bradley_terry.comparisons import differences
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.rate import BradleyTerryRatings
from projections.ratings.forecast import SURE, prompts_needed
from projections.results.ratings import GateRow, GateVerdict
from projections.student import critical_value

GatePolicy: TypeAlias = Literal["not-worse", "better"]
MARGIN: Final = 30.0  # Elo points: at 30, 54 of 100 verdicts name the better


def pass_or_stop(
    dimension: str,
    battles: Battles,
    ratings: BradleyTerryRatings,
    *,
    pair: tuple[str, str],
    margin: float,
    policy: GatePolicy,
) -> GateRow:
    """Judge a candidate and a baseline by their ratings on a dimension.

    Args:
        dimension: What was compared.
        battles: Of all entrants; their clusters are prompts.
        ratings: By these battles.
        pair: The candidate and the baseline, both of them rated.
        margin: Elo points that the candidate may be behind.
        policy: `not-worse`: within the margin is enough; `better`: it must be ahead.
    """
    if not set(pair) <= set(ratings.entrants):
        unmet = " and ".join(sorted({*pair} - {*ratings.entrants}))
        return _unknown(dimension, pair, margin, f"{unmet} has no battle")
    candidate, baseline = (ratings.entrants.index(name) for name in pair)
    found = differences(ratings)
    lead, error = found.points[candidate, baseline], found.error[candidate, baseline]
    reach = float(critical_value(LEVEL, found.freedom[candidate, baseline])) * error
    n_prompts = int(ratings.support.n_clusters[candidate])
    low, high, n_judged = lead - reach, lead + reach, len(np.unique(battles.cluster))
    why: str | None = None
    if np.isnan(reach):
        low, high, n_prompts = _by_share(battles, pair)
        why = _why_unknown(lead, has_bounds=not np.isnan(low))
    verdict = _verdict(low, high, margin, policy)
    is_forecast = verdict == "not enough" and policy == "not-worse"  # equals are never better
    return GateRow(
        dimension,
        verdict,
        *pair,
        difference=known(lead),
        low=low if isfinite(low) else None,
        high=high if isfinite(high) else None,
        margin=margin,
        n_prompts=n_prompts,
        n_more_prompts=_more(n_judged, reach, error, margin) if is_forecast else None,
        why=why,
    )


def _unknown(dimension: str, pair: tuple[str, str], margin: float, why: str) -> GateRow:
    return GateRow(dimension, "not enough", *pair, None, None, None, margin, 0, None, why)


def _by_share(battles: Battles, pair: tuple[str, str]) -> tuple[float, float, int]:
    """Return the bounds of the lead by the two's own battles, and on how many prompts they met."""
    is_first = battles.a == battles.entrants.index(pair[0])
    places = np.flatnonzero(battles.between(pair) & ~np.isnan(battles.score))
    taken = np.where(is_first, battles.score, 1.0 - battles.score)[places]
    weight, clusters = battles.weight[places], battles.cluster[places]
    n_prompts = len(np.unique(clusters))
    share = estimate_ratio(RatioTerms(weight * taken, weight), clusters.tolist(), "share")
    if n_prompts < FEWEST_CLUSTERS or share.low is None or share.high is None:
        return nan, nan, n_prompts
    low, high = (ELO * _log_odds(bound) for bound in (share.low, share.high))
    return low, high, n_prompts


def _log_odds(share: float) -> float:
    if share in {0.0, 1.0}:
        return inf if share else -inf
    return log(share / (1.0 - share))


def _verdict(low: float, high: float, margin: float, policy: GatePolicy) -> GateVerdict:
    if policy == "not-worse" and low > -margin:
        return "not worse"
    if policy == "better" and low > 0:
        return "better"
    return "worse" if high < 0 else "not enough"


def _more(n_prompts: int, reach: float, error: float, margin: float) -> int | None:
    """Return how many more prompts show in 4 of 5 that equals are within the margin.

    The error falls with the root of their number. A forecast by the lead so far would err by it.
    """
    if np.isnan(reach) or not margin:
        return None
    return max(0, prompts_needed(n_prompts, reach + SURE * error, margin) - n_prompts)


def _why_unknown(lead: float, *, has_bounds: bool) -> str:
    if has_bounds:
        return "no interval of a rating: bounded by the share of the two's own battles"
    if np.isnan(lead):
        return "one of them beat all that it met, or lost to all, or they met nobody in common"
    return f"no interval: it takes {FEWEST_CLUSTERS} prompts, on which the two differ"
