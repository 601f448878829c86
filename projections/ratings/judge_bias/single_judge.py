"""Biases of a single judge: slot preference, flips, and preference for a style."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.intervals import Estimate, Floats, RatioTerms, Scale, estimate_ratio, wilson
from projections.ratings.judge_bias.pairs import JudgedPairs, Places
from projections.ratings.style import AdjustedFit, fit_adjusted
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN

SLOT: Final = "slot"
"""The feature that is 1 where a was shown first, and -1 where it was shown second."""


def slot_preference(pairs: JudgedPairs) -> Estimate:
    """Return the share of verdicts for slot A minus that for slot B, over both orders.

    What a response deserves cancels between the orders: a judge that says A in a share p of its
    verdicts, whatever it sees, and is fair otherwise, has p. n counts verdicts.

    Where all prompts agree, a share of others may have gone unseen, as large as Wilson's bound for
    none of as many; on these every verdict may be for one slot. On fewer prompts than any interval
    takes there is none.
    """
    found = _mean(pairs.forward - pairs.swapped, pairs.prompt, "plain")
    low, high = found.low, found.high
    if found.value is not None and low is not None and low == high:
        unseen = wilson(0.0, len(np.unique(pairs.prompt))).upper
        low = found.value - unseen * (1 + found.value)
        high = found.value + unseen * (1 - found.value)
    return found._replace(n=2 * found.n, low=low, high=high)


class Flips(NamedTuple):
    """The share of pairs in which the orders disagree: of all, in a way, or of two entrants."""

    of: str
    share: Estimate


def flips(pairs: JudgedPairs) -> Iterator[Flips]:
    """Yield the flips of all pairs, in either way, then of each two entrants that met."""
    names, n = pairs.entrants, len(pairs.entrants)
    flipped = pairs.is_inconsistent.astype(np.float64)
    opposite = (np.abs(pairs.forward - pairs.swapped) == 1).astype(np.float64)
    yield Flips("all pairs", _mean(flipped, pairs.prompt, "share"))
    yield Flips(OPPOSITE, _mean(opposite, pairs.prompt, "share"))
    yield Flips(TIE_BESIDE_WIN, _mean(flipped - opposite, pairs.prompt, "share"))
    met = np.minimum(pairs.a, pairs.b) * n + np.maximum(pairs.a, pairs.b)
    order = np.argsort(met, kind="stable")
    numbers, starts = np.unique(met[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for number, start, end in zip(numbers, starts, ends, strict=True):
        places = order[start:end]
        share = _mean(flipped[places], pairs.prompt[places], "share")
        yield Flips(f"{names[number // n]} and {names[number % n]}", share)


def style_effects(pairs: JudgedPairs) -> AdjustedFit:
    """Return what differences in style do to a verdict, beside strengths and the slot.

    Each order counts as a battle; those of a prompt are not independent.

    Raises:
        CannotRate: No two entrants can be compared, or a feature cannot be told from the others
            and the entrants.
    """
    n = len(pairs)
    first = np.repeat((1.0, -1.0), n)
    style = {name: np.tile(column, 2) for name, column in pairs.style.items()}
    return fit_adjusted(pairs.orders(), {SLOT: first, **style}, BradleyTerryParameters())


def _mean(values: Floats, prompt: Places, scale: Scale) -> Estimate:
    """Return the mean of one value for each pair, with its interval over prompts."""
    return estimate_ratio(RatioTerms(values, np.ones(len(values))), prompt.tolist(), scale)
