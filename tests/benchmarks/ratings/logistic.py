"""Bradley-Terry as arenas fit it: battles are drawn, and a logistic regression is fitted to them.

A battle of score s is a row that is won by s and one that is lost by 1 - s. Rows are sparse and the
tolerance is JudgeArena's: scikit-learn is quicker so than with rows that are dense.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles

Numbers = NDArray[np.intp]
Floats = NDArray[np.float64]

_TOLERANCE: Final = 1e-6
_HARDLY: Final = 1e10  # the inverse of how much strengths are drawn to 0


def fit_resamples(battles: Battles, n_resamples: int, *, merges: bool = False) -> None:
    """Fit resamples one after the other.

    Args:
        battles: What is drawn from.
        n_resamples: How often as many are drawn.
        merges: Whether battles that are alike become one row, weighted, as in JudgeArena.
    """
    for drawn in _drawn(len(battles), n_resamples):
        numbers, times = _merged(battles, drawn) if merges else (drawn, np.ones(len(drawn)))
        fit(battles, numbers, times)


def fit(battles: Battles, numbers: Numbers, times: Floats) -> Floats:
    """Return the strengths by those battles, (n_entrants,) logits, each battle so many times."""
    a, b, score = (side[numbers] for side in (battles.a, battles.b, battles.score))
    weight = np.concatenate((times * score, times * (1 - score)))
    kept = weight > 0
    both = np.tile(np.stack((a, b), axis=1), (2, 1))[kept]
    rows = import_module("scipy.sparse").csr_array(
        (np.tile([1.0, -1.0], len(both)), both.ravel(), np.arange(0, both.size + 1, 2)),
        shape=(len(both), len(battles.entrants)),
    )
    is_won = np.repeat([1, 0], len(numbers))[kept]
    regression = import_module("sklearn.linear_model").LogisticRegression(
        C=_HARDLY, fit_intercept=False, tol=_TOLERANCE, max_iter=1_000
    )
    return np.asarray(regression.fit(rows, is_won, weight[kept]).coef_[0])


def _drawn(n_battles: int, n_resamples: int) -> Iterator[Numbers]:
    rng = np.random.default_rng(7)
    for _ in range(n_resamples):
        yield rng.integers(n_battles, size=n_battles)


def _merged(battles: Battles, drawn: Numbers) -> tuple[Numbers, Floats]:
    """Return one battle of each kind that was drawn, and how often it was."""
    columns = (battles.a[drawn], battles.b[drawn], np.rint(2 * battles.score[drawn]).astype(int))
    n = len(battles.entrants)
    kind = np.ravel_multi_index(columns, (n, n, 3))
    _, first, count = np.unique(kind, return_index=True, return_counts=True)
    return drawn[first], count.astype(np.float64)
