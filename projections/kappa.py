"""How far judges agree beyond chance: kappa and what it is made of, for nominal categories.

Each is a quotient of whole numbers, so that perfect agreement is exactly 1.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """Raw agreement, what chance alone would give, and kappa; None where it is not defined."""

    observed: float | None
    by_chance: float | None
    kappa: float | None
    n: int  # items


def cohen(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Return how two judges agree, item by item.

    kappa = (p_o - p_e) / (1 - p_e), where p_o is the share of items on which they agree and p_e
    the sum over categories of the product of both judges' shares (Cohen 1960).

    Args:
        first: The category that one judge gave each item.
        second: The category that the other gave it, in the same order.
    """
    n = len(first)
    n_equal = sum(a == b for a, b in zip(first, second, strict=True))
    counts, others = Counter(first), Counter(second)
    chance = sum(count * others[category] for category, count in counts.items())
    return _agreement(n_equal * n, chance, whole=n * n, n=n)


def fleiss(ratings: Sequence[Sequence[Hashable]]) -> Agreement:
    """Return how any number of judges agree, each item judged by all of them.

    kappa = (P - P_e) / (1 - P_e), where P is the share of agreeing pairs of judges, over all
    items, and P_e the sum of the squared shares of the categories (Fleiss 1971).

    Args:
        ratings: For each item the categories given, one a judge, two at least.
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


def _agreement(observed: int, by_chance: int, *, whole: int, n: int) -> Agreement:
    if whole == 0:
        return Agreement(None, None, None, n)
    kappa = (observed - by_chance) / (whole - by_chance) if whole > by_chance else None
    return Agreement(observed / whole, by_chance / whole, kappa, n)
