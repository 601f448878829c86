"""How far two orderings of the same things agree."""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rho: Pearson's correlation of ranks, ties having their mean rank.

    Args:
        first: One score a thing.
        second: Its other score, in the same order.

    Returns:
        From -1 to 1; None where one side does not order at all.
    """
    ranks = list(zip(_doubled_ranks(first), _doubled_ranks(second), strict=True))
    middle = len(ranks) + 1  # doubled, too
    covariance = sum((a - middle) * (b - middle) for a, b in ranks)
    variances = sum((a - middle) ** 2 for a, _ in ranks) * sum((b - middle) ** 2 for _, b in ranks)
    return covariance / sqrt(variances) if variances else None


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b: concordant less discordant pairs, with an allowance for ties.

    tau_b = (C - D) / sqrt((n_0 - n_1)(n_0 - n_2)), where n_0 is the number of pairs and n_1, n_2
    those tied on either side (Kendall 1945).

    Args:
        first: One score a thing.
        second: Its other score, in the same order.

    Returns:
        From -1 to 1; None where one side does not order at all.
    """
    signs = [
        (_sign(a - c), _sign(b - d))
        for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2)
    ]
    balance = sum(a * b for a, b in signs)
    untied = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return balance / sqrt(untied) if untied else None


def _doubled_ranks(scores: Sequence[float]) -> list[int]:
    """Return twice the rank of each score: a whole number even where it is a mean."""
    return [
        sum(other < score for other in scores) + sum(other <= score for other in scores) + 1
        for score in scores
    ]


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)
