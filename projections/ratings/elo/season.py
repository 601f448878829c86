"""Elo's fold: play battles in many orders side by side, under several K.

All operations are exactly rounded ones (+, -, *, / and square roots), so that every processor finds
the same bits, and a run can be replayed on another. NumPy's own powers differ in the last bit.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import sqrt
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import TIE, Battles, CannotRate
from projections.intervals import Floats

Numbers: TypeAlias = NDArray[np.unsignedinteger]
"""Numbers of outcomes, (n_battles,); the number of outcomes stands for none: who waits plays it."""
Orders: TypeAlias = NDArray[np.unsignedinteger]
"""Numbers of outcomes in the order of play, (n_orders, n_steps)."""

MOST_BYTES: Final = 180_000_000  # of the orders that are held at once: 500 of 90,000 battles
LN_10: Final = 2.302585092994046
_LN_2: Final = 0.6931471805599453
_HALVINGS: Final = 10
_PARTS: Final = 2**_HALVINGS  # of a doubling of the odds: the steps of the table of powers
_REACH: Final = 64  # doublings in the table: further apart, a score is expected to 19 digits
_LOG_PART: Final = _LN_2 / _PARTS
_POINTS: Final = 400.0 * _LOG_PART / LN_10  # of Elo, for each part


class Outcomes(NamedTuple):
    """The different outcomes of battles. They are few, so orders of them take little memory."""

    n_entrants: int
    winner: NDArray[np.intp]  # (n_outcomes,) of a tie: either
    loser: NDArray[np.intp]
    rest: Floats  # (n_outcomes,) what the loser took of the point: half of a tie


def outcomes_of(battles: Battles) -> tuple[Outcomes, Numbers]:
    """Return the different outcomes, and that of each battle.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    if (battles.weight != 1.0).any():
        remedy = "use Bradley-Terry, or remove the weights"
        raise CannotRate("Elo cannot use weights, and these battles have some", remedy)
    a_won = battles.score >= TIE  # or took half
    winner = np.where(a_won, battles.a, battles.b)
    loser = np.where(a_won, battles.b, battles.a)
    rest, n = np.minimum(battles.score, 1.0 - battles.score), len(battles.entrants)
    rests, its_rest = np.unique(rest, return_inverse=True)
    name = (winner * n + loser) * len(rests) + its_rest
    _, first, number = np.unique(name, return_index=True, return_inverse=True)
    outcomes = Outcomes(n, winner[first], loser[first], rest[first])
    return outcomes, number.astype(np.min_scalar_type(len(first)))


def play(
    outcomes: Outcomes, orders: Orders, *, ks: Sequence[float], last: Sequence[float] = (1.0,)
) -> Floats:
    """Play every order under every K: (n_orders, n_entrants, n_ks) Elo points gained.

    The expected score of a is E = 1 / (1 + 10^((R_b - R_a) / 400)); after a battle in which it
    scored S, R_a += K (S - E) and R_b -= K (S - E) (Elo 1978). The rating is the sum over the
    last battles of what it was after each, times the battle's weight in `last`.
    """
    (n_orders, n_steps), n = orders.shape, outcomes.n_entrants
    ratings = np.zeros((len(ks), (n + 2) * n_orders))  # the last two entrants play who waits
    winners = np.append(outcomes.winner, n) * n_orders
    losers = np.append(outcomes.loser, n + 1) * n_orders
    rest = np.append(outcomes.rest, 0.0)
    sums, k, lane = np.zeros_like(ratings), np.array(ks)[:, None] / _POINTS, np.arange(n_orders)
    has_rest = outcomes.rest.any()
    for step, played in enumerate(np.ascontiguousarray(orders.T), start=len(last) - n_steps):
        won, lost = winners.take(played) + lane, losers.take(played) + lane
        winner, loser = ratings.take(won, axis=1), ratings.take(lost, axis=1)
        gained = k / (1.0 + _power_of_2(winner - loser))
        if has_rest:
            gained -= k * rest.take(played)
        for of_k, more, less in zip(ratings, winner + gained, loser - gained, strict=True):
            of_k[won], of_k[lost] = more, less  # faster than all K at once
        if step >= 0:
            sums += last[step] * ratings
    points = sums.reshape(len(ks), n + 2, n_orders)[:, :-2]
    return np.ascontiguousarray(points.transpose(2, 1, 0)) * _POINTS


def play_all(
    outcomes: Outcomes,
    orders: Iterator[Numbers],
    n_steps: int,
    *,
    ks: Sequence[float],
    last: Sequence[float] = (1.0,),
    most_bytes: int = MOST_BYTES,
) -> Floats:
    """Play orders of about n_steps battles, as many at once as fit into memory twice.

    Of those that are played at once, the shorter begin with idle steps.
    """
    n_outcomes = len(outcomes.rest)
    size = np.min_scalar_type(n_outcomes).itemsize
    n_at_once = max(1, most_bytes // max(1, 2 * n_steps * size))
    played: list[Floats] = []
    while batch := list(islice(orders, n_at_once)):
        longest = max(map(len, batch))
        steps = np.full((longest, len(batch)), n_outcomes, dtype=batch[0].dtype)
        for lane, order in zip(steps.T, batch, strict=True):
            lane[longest - len(order) :] = order
        played.append(play(outcomes, steps.T, ks=ks, last=last))
    return np.concatenate(played)


def _powers_of_2() -> Floats:
    """Return 2^(n / _PARTS) for n from -_REACH _PARTS up, from square roots of 2 and products."""
    powers, root = np.ones(1), 2.0
    for _ in range(_HALVINGS):
        root = sqrt(root)
        powers = np.column_stack((powers, powers * root)).ravel()
    return np.asarray(np.ldexp(powers, np.arange(-_REACH, _REACH)[:, None]).ravel())


_POWERS: Final = _powers_of_2()
_LINEAR, _SQUARE, _CUBIC = _LOG_PART, _LOG_PART**2 / 2, _LOG_PART**3 / 6


def _power_of_2(parts: Floats) -> Floats:
    """Return 2^(parts / _PARTS) to 1e-15.

    It is one from the table times e^x, x being what is left, at most half a part: four terms of the
    series are enough.
    """
    whole = np.rint(parts)
    x = parts - whole
    power = x * _CUBIC
    for term in (_SQUARE, _LINEAR):
        power += term
        power *= x
    power += 1.0
    power *= _POWERS.take((whole + _REACH * _PARTS).astype(np.intp), mode="clip")
    return power
