"""Agreement and rank correlation: kappas, Krippendorff's alpha, Spearman's rho, Kendall's tau-b.

The kappas are quotients of whole numbers, so perfect agreement is exactly 1.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import combinations
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats, jackknife_interval


class Agreement(NamedTuple):
    """Observed agreement, agreement by chance, and kappa; None where not defined."""

    observed: float | None
    by_chance: float | None
    kappa: float | None
    n: int  # items


def cohen(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Return the agreement of two judges from the category that each gave each item.

    kappa = (p_o - p_e) / (1 - p_e), where p_o is the share of items on which they agree and p_e the
    sum over categories of the product of both judges' shares (Cohen 1960).
    """
    n = len(first)
    n_equal = sum(a == b for a, b in zip(first, second, strict=True))
    counts, others = Counter(first), Counter(second)
    chance = sum(count * others[category] for category, count in counts.items())
    return _agreement(n_equal * n, chance, whole=n * n, n=n)


def fleiss(ratings: Sequence[Sequence[Hashable]]) -> Agreement:
    """Return the agreement of two or more judges from each item's categories, one for each judge.

    kappa = (P - P_e) / (1 - P_e), where P is the share of agreeing pairs of judges, over all items,
    and P_e the sum of the squared shares of the categories (Fleiss 1971).
    """
    n, n_judges = len(ratings), len(ratings[0]) if ratings else 0
    n_equal = sum(sum(k * (k - 1) for k in Counter(row).values()) for row in ratings)
    totals = Counter(category for row in ratings for category in row)
    chance = sum(total * total for total in totals.values())
    # both as shares of (n * n_judges)**2 * (n_judges - 1)
    return _agreement(
        n_equal * n * n_judges,
        chance * (n_judges - 1),
        whole=(n * n_judges) ** 2 * (n_judges - 1),
        n=n,
    )


def krippendorff(ratings: Sequence[Sequence[Hashable]]) -> Agreement:
    """Return the agreement from the categories that each item was given, by any number of judges.

    alpha = (A_o - A_e) / (1 - A_e) for nominal data: of m categories given to an item, each two
    that are equal add 1 / (m - 1) to n A_o, where n is how many were given to items with two or
    more; A_e is the share of equal pairs among all n (Krippendorff 2011).
    """
    items = [Counter(row) for row in ratings if len(row) > 1]
    totals = sum(items, Counter[Hashable]())
    n = totals.total()
    if not n:
        return Agreement(None, None, None, 0)
    pairs = (Fraction(sum(k * (k - 1) for k in row.values()), row.total() - 1) for row in items)
    observed = sum(pairs, Fraction()) / n
    by_chance = Fraction(sum(k * (k - 1) for k in totals.values()), n * (n - 1))
    alpha = None if by_chance == 1 else float((observed - by_chance) / (1 - by_chance))
    return Agreement(float(observed), float(by_chance), alpha, len(items))


def _agreement(observed: int, by_chance: int, *, whole: int, n: int) -> Agreement:
    if whole == 0:
        return Agreement(None, None, None, n)
    kappa = (observed - by_chance) / (whole - by_chance) if whole > by_chance else None
    return Agreement(observed / whole, by_chance / whole, kappa, n)


Bounds = tuple[float, float] | tuple[None, None]
"""Of a 95 % interval; None where there is none."""


def cohen_interval(
    first: Sequence[Hashable], second: Sequence[Hashable], prompts: Sequence[Hashable]
) -> Bounds:
    """Return the 95 % interval of Cohen's kappa, clustered by prompt."""
    shown, places = _numbered([*first, *second])
    n, k = len(first), len(shown)
    table = np.zeros((n, k * k))
    table[np.arange(n), places[:n] * k + places[n:]] = 1.0

    def kappa(sums: Floats) -> Floats:
        counts = sums.reshape(-1, k, k)
        whole = counts.sum(axis=(1, 2))
        observed = np.trace(counts, axis1=1, axis2=2) / whole
        by_chance = (counts.sum(axis=1) * counts.sum(axis=2)).sum(axis=1) / whole**2
        return _beyond(observed, by_chance)

    return _at_most_1(jackknife_interval(table, prompts, kappa))


def interval_of_all(
    ratings: Sequence[Sequence[Hashable]], prompts: Sequence[Hashable], *, is_alpha: bool
) -> Bounds:
    """Return the 95 % interval of Fleiss' kappa or Krippendorff's alpha, clustered by prompt.

    By chance two ratings are equal as if they were drawn from all, for alpha without replacement.
    """
    kept = [place for place, row in enumerate(ratings) if len(row) > 1]

    def statistic(sums: Floats) -> Floats:
        equal, totals = sums[:, 0], sums[:, 1:]
        whole = totals.sum(axis=1)
        by_chance = (totals * (totals - is_alpha)).sum(axis=1) / (whole * (whole - is_alpha))
        return _beyond(equal / whole, by_chance)

    parts = _equal_and_totals([ratings[place] for place in kept])
    return _at_most_1(jackknife_interval(parts, [prompts[place] for place in kept], statistic))


def _equal_and_totals(ratings: Sequence[Sequence[Hashable]]) -> Floats:
    """Return (n, 1 + k): the equal pairs by a category, then how often each category was given."""
    shown, places = _numbered([category for row in ratings for category in row])
    totals = np.zeros((len(ratings), len(shown)))
    np.add.at(totals, (np.repeat(np.arange(len(ratings)), [*map(len, ratings)]), places), 1.0)
    others = totals.sum(axis=1) - 1
    equal = (totals * (totals - 1)).sum(axis=1) / others
    return np.column_stack((equal, totals))


def _numbered(given: Sequence[Hashable]) -> tuple[list[Hashable], NDArray[np.intp]]:
    shown = [*dict.fromkeys(given)]
    number = {category: place for place, category in enumerate(shown)}
    return shown, np.array([number[category] for category in given], dtype=np.intp)


def _beyond(observed: Floats, by_chance: Floats) -> Floats:
    room = 1.0 - by_chance
    defined = room > _ROUNDING
    return np.where(defined, (observed - by_chance) / np.where(defined, room, 1.0), np.nan)


_ROUNDING: Final = 1e-12


def _at_most_1(bounds: Bounds) -> Bounds:
    low, high = bounds
    return (None, None) if low is None or high is None else (max(-1.0, low), min(1.0, high))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rho: Pearson's correlation of ranks, ties having their mean rank.

    It is None where all scores of one side are equal.
    """
    ranks = list(zip(_doubled_ranks(first), _doubled_ranks(second), strict=True))
    middle = len(ranks) + 1  # doubled, too
    covariance = sum((a - middle) * (b - middle) for a, b in ranks)
    variances = sum((a - middle) ** 2 for a, _ in ranks) * sum((b - middle) ** 2 for _, b in ranks)
    return covariance / sqrt(variances) if variances else None


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b: concordant minus discordant pairs, adjusted for ties.

    tau_b = (C - D) / sqrt((n_0 - n_1)(n_0 - n_2)), where n_0 is the number of pairs and n_1, n_2
    those tied on either side (Kendall 1945). It is None where all scores of one side are equal.
    """
    signs = [
        (_sign(a - c), _sign(b - d))
        for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2)
    ]
    balance = sum(a * b for a, b in signs)
    untied = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return balance / sqrt(untied) if untied else None


def _doubled_ranks(scores: Sequence[float]) -> list[int]:
    """Return twice the rank of each score, so that mean ranks are whole numbers."""
    return [
        sum(other < score for other in scores) + sum(other <= score for other in scores) + 1
        for score in scores
    ]


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)
