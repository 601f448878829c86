"""How sure a fit is, by fitting again with evidence drawn anew.

Multinomial: as many units as there are, drawn with replacement (Efron 1979). Bayesian: each unit
weighs as a draw of gamma(1, 1) (Rubin 1981; Newton and Raftery 1994); as none weighs 0, there is
a fit whenever there is one of the data. Units that are alike weigh together as one draw of
gamma(count, 1), so that cells are drawn instead of battles.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.likelihood import Likelihood
from projections.resamples import ROUNDING, Floats

Bootstrap: TypeAlias = Literal["bayesian", "multinomial"]

_BATCH: Final = 40_000  # numbers in a batch of square matrices: they stay in the processor's cache
_DRAWN: Final = 2_000_000  # numbers drawn at a time
_CLOSE: Final = 1e-4  # of a strength: the square of it, what is missing, is nothing beside noise


class Bounds(NamedTuple):
    """Both ends of an interval, (n,) each."""

    lower: Floats
    upper: Floats


def resampled(
    likelihood: Likelihood,
    parameters: Floats,
    kind: Bootstrap,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the strengths of each resample, (resamples, n_entrants); NaN where it has none.

    A prior is drawn, too: in each resample it has another centre. So the spread has the prior's
    part, as the sandwich has.

    Args:
        likelihood: What was fitted.
        parameters: (k,) the fit, from where each resample's is three or four steps away.
        kind: How evidence is drawn.
        resamples: How often.
        rng: What draws.
    """
    n, n_units = likelihood.model.n_entrants, len(likelihood.units.count)
    size = max(1, min(_BATCH // n**2, _DRAWN // n_units))
    batches = [min(size, resamples - start) for start in range(0, resamples, size)]
    return np.concatenate([_batch(likelihood, parameters, kind, each, rng) for each in batches])


def percentiles(draws: Floats, level: float) -> Bounds:
    """Return the bounds that leave out the same number of draws at either end.

    A draw that is NaN counts as beyond both, so that a bound is infinite if too many are.

    Args:
        draws: (resamples, n).
        level: The share of draws between the bounds.
    """
    n_below = int(len(draws) * (1 - level) / 2 + ROUNDING)
    lower = np.sort(np.where(np.isnan(draws), -np.inf, draws), axis=0)[n_below]
    upper = np.sort(np.where(np.isnan(draws), np.inf, draws), axis=0)[-1 - n_below]
    return Bounds(lower, upper)


def _batch(
    likelihood: Likelihood,
    parameters: Floats,
    kind: Bootstrap,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    n = likelihood.model.n_entrants
    counts = likelihood.counts(_evidence(likelihood.units.count, kind, size, rng))
    sd = likelihood.precision**-0.5 if likelihood.precision else 0.0
    centre = rng.normal(scale=sd, size=(size, n))
    strengths = np.full((size, n), np.nan)
    fitted = likelihood.has_fit(counts)
    start = np.tile(parameters, (fitted.sum(), 1))
    found = likelihood.climb(start, counts[fitted], tolerance=_CLOSE, centre=centre[fitted])
    strengths[fitted] = np.where(found.settled[:, None], found.parameters[:, :n], np.nan)
    return strengths


def _evidence(
    count: NDArray[np.int64], kind: Bootstrap, size: int, rng: np.random.Generator
) -> Floats:
    """Draw how often each unit is there, (size, n_units)."""
    if kind == "bayesian":
        return rng.standard_gamma(count, (size, len(count)))
    n_units = count.sum()
    return rng.multinomial(n_units, count / n_units, size).astype(np.float64)
