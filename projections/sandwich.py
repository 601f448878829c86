"""How sure a fit is, in closed form: the sandwich covariance, clustered by unit.

It stays right where the battles of a unit are not independent, and where the model is not quite
true (Huber 1967; White 1982; for clusters Liang and Zeger 1986).
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.likelihood import Likelihood
from projections.resamples import Floats

_BLOCK: Final = 2_000_000  # numbers in a table of units by parameters, at a time


class _Entries(NamedTuple):
    """The derivatives of each battle's log-likelihood that are not 0, in a few columns.

    unit: (n,) the battle's unit; parameter: (n, few); derivative: (n, few).
    """

    unit: NDArray[np.intp]
    parameter: NDArray[np.intp]
    derivative: Floats

    def of(self, battles: NDArray[np.bool_ | np.intp]) -> "_Entries":
        return _Entries(self.unit[battles], self.parameter[battles], self.derivative[battles])


def covariance(likelihood: Likelihood, parameters: Floats) -> Floats:
    """Return the covariance of strengths at a fit, (n_entrants, n_entrants).

    H^-1 (C / (C - 1) sum of g g' + P) H^-1, where H is the information with that of the prior, P
    the prior's alone, and g the derivatives of the log-likelihood of one of C units. C / (C - 1)
    makes up for a fit that is nearest to its own data, which shows where units are few. The prior
    counts as evidence whose variance is known: without it, an entrant that never lost would seem
    sure of a rating that is all prior. Without a prior only what is said of differences counts,
    as in a fit.

    Args:
        likelihood: What was fitted, to two units at least.
        parameters: (k,) the fit.
    """
    n, n_units = likelihood.model.n_entrants, likelihood.units.count.sum()
    information = likelihood.information(parameters)
    meat = _outer_products(likelihood, parameters) * n_units / (n_units - 1)
    meat[np.arange(n), np.arange(n)] += likelihood.precision
    half = np.linalg.solve(information, meat)
    return np.asarray(np.linalg.solve(information, half.T)[:n, :n], dtype=np.float64)


def _outer_products(likelihood: Likelihood, parameters: Floats) -> Floats:
    """Return the sum over units of g g', (k, k)."""
    model, units = likelihood.model, likelihood.units
    scores = model.scores(parameters, units)
    others = np.arange(model.n_entrants, model.n_parameters)
    entries = _Entries(
        units.unit,
        np.column_stack((units.a, units.b, np.tile(others, (len(units.a), 1)))),
        np.column_stack((scores.strength, -scores.strength, scores.others)),
    )
    alone = np.bincount(units.unit)[units.unit] == 1
    apart = _of_single_battles(entries.of(alone), units.count, model.n_parameters)
    return apart + _of_several_battles(entries.of(~alone), model.n_parameters)


def _of_single_battles(entries: _Entries, count: NDArray[np.int64], k: int) -> Floats:
    """Add up where a battle is a unit, so that few products are not 0."""
    unit, parameter, derivative = entries
    place = parameter[:, :, None] * k + parameter[:, None, :]
    product = derivative[:, :, None] * derivative[:, None, :] * count[unit][:, None, None]
    sums = np.bincount(place.ravel(), product.ravel(), minlength=k * k)
    return np.reshape(sums.astype(np.float64, copy=False), (k, k))


def _of_several_battles(entries: _Entries, k: int) -> Floats:
    """Add up where a unit has several battles, in tables of units by parameters."""
    unit, parameter, derivative = entries.of(np.argsort(entries.unit, kind="stable"))
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    number = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(unit)))
    products = np.zeros((k, k))
    for first in range(0, len(starts), max(1, _BLOCK // k)):
        n_units = min(len(starts) - first, max(1, _BLOCK // k))
        rows = slice(*np.searchsorted(number, (first, first + n_units)))
        place = (number[rows, None] - first) * k + parameter[rows]
        flat = np.bincount(place.ravel(), derivative[rows].ravel(), minlength=n_units * k)
        table = flat.reshape(n_units, k)  # their g
        products += table.T @ table
    return products
