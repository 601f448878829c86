"""How often looks are wrong, what they spare, and whether intervals after them hold the truth.

Tournaments are those of `tests/support/builders/looks`, of 143 prompts and four looks. Beside the
decisions stand those of the same tournament asked in full and looked at once.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.comparisons import differences, pairs
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.looks import Contest
from projections.student import critical_value
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row, at_least, at_most, between, stated
from tests.support.builders.looks import (
    LOGIT,
    all_pairs,
    decided_in_full,
    looked_at,
    simulated,
    true_ratings,
    with_baseline,
    wrong,
)

SEED: Final = 2026  # of all that is drawn
Design: TypeAlias = Callable[[Battles], Collection[Contest]]
_N_NULL: Final = 1_000
_N_PLANTED: Final = 150
_N_COVERED: Final = 400
_CELLS: Final = ((4, 120), (4, 200), (8, 150), (12, 150), (20, 150))  # entrants, sd in Elo points
_LADDER: Final = np.array([0.0, 20, 60, 120, 140]) / LOGIT


def equals(n_entrants: int) -> Floats:
    """Return the strengths of equals."""
    return np.zeros(n_entrants)


def blocks(n_entrants: int) -> Floats:
    """Return the strengths of two blocks of equals, 300 Elo points apart."""
    return np.repeat([0.0, 300 / LOGIT], n_entrants // 2)


def false_share(
    strengths: Floats, n: int, *, stops_futile: bool, design: Design = all_pairs
) -> float:
    """Return the share of tournaments where some look decides that equals differ."""
    rng = np.random.default_rng([SEED, len(strengths)])
    n_wrong = 0
    for _ in range(n):
        battles = simulated(strengths, rng)
        seen = looked_at(battles, design(battles), stops_futile=stops_futile)
        n_wrong += any(wrong(seen.decided, strengths))
    return n_wrong / n


class Spared(NamedTuple):
    """What looks ask and decide: shares of what a tournament in full asks and rightly decides."""

    asked: float
    kept: float
    wrong: float  # the share of tournaments with a wrong decision


def spared(n_entrants: int, sd: float, n: int) -> Spared:
    """Draw strengths with a standard deviation in Elo points; compare with all being asked."""
    rng = np.random.default_rng([SEED, n_entrants, int(sd)])
    asked, n_kept, n_right, n_wrong = list[float](), 0, 0, 0
    for _ in range(n):
        strengths = rng.normal(scale=sd / LOGIT, size=n_entrants)
        battles = simulated(strengths, rng)
        seen, full = looked_at(battles, all_pairs(battles)), decided_in_full(battles)
        right = full - {*wrong(full, strengths)}
        asked.append(len(seen.asked) / len(battles))
        n_kept, n_right = n_kept + len(right & seen.decided), n_right + len(right)
        n_wrong += any(wrong(seen.decided, strengths))
    return Spared(float(np.mean(asked)), n_kept / n_right if n_right else 1.0, n_wrong / n)


class Covered(NamedTuple):
    """How often intervals of differences hold the truth: of each pair, and of all at once."""

    of_pairs: Floats
    of_all: float


def covered(strengths: Floats, n: int) -> Covered:
    """Look at tournaments of planted strengths, and count the widened intervals that hold."""
    rng = np.random.default_rng([SEED, len(strengths), 4])
    rating = true_ratings(strengths, rng)
    truth = dict(zip(simulated(strengths, rng).entrants, rating.tolist(), strict=True))
    upper = np.triu_indices(len(strengths), 1)
    true = (rating[:, None] - rating)[upper]
    holds, at_once = list[NDArray[np.bool_]](), 0
    for _ in range(n):
        battles = simulated(strengths, rng)
        seen = looked_at(battles, all_pairs(battles))
        ratings = rate(seen.asked.by_verdicts("half"), BradleyTerryParameters())
        ratings = ratings.widened(seen.widening)
        found = differences(ratings)
        reach = critical_value(0.95, found.freedom) * found.error
        holds.append(np.abs(found.points[upper] - true) <= reach[upper])
        at_once += all(
            row.low is not None
            and row.high is not None
            and row.low <= truth[row.entrant_a] - truth[row.entrant_b] <= row.high
            for row in pairs(ratings)
        )
    return Covered(np.mean(holds, axis=0), at_once / n)


def measure(bench: Bench) -> Iterator[Row]:
    """Look at tournaments whose truth is known."""
    yield from _of_errors(bench.scaled(_N_NULL, at_least=2))
    yield from _of_sparing(bench)
    yield from _of_coverage(bench.scaled(_N_COVERED, at_least=2))


def _of_errors(n: int) -> Iterator[Row]:
    for n_entrants in (4, 8, 12):
        n_here = max(2, n if n_entrants == 4 else 3 * n // 10)
        for name, design in (("all pairs", all_pairs), ("a baseline", with_baseline)):
            share = false_share(equals(n_entrants), n_here, stops_futile=True, design=design)
            what = f"{n_entrants} equals, {name}, {n_here:,} times: one called better"
            yield stated(what, f"{share:.1%}", share, at_most(0.06))
            share = false_share(equals(n_entrants), n_here, stops_futile=False, design=design)
            yield stated(f"{what}, futile pairs asked", f"{share:.1%}", share, between(0.03, 0.06))
    for n_entrants in (4, 8):
        n_here = max(2, n if n_entrants == 4 else 3 * n // 10)
        share = false_share(blocks(n_entrants), n_here, stops_futile=True)
        what = f"two blocks of {n_entrants // 2} equals, 300 Elo apart, {n_here:,} times"
        yield stated(f"{what}: one called better", f"{share:.1%}", share, at_most(0.06))


def _of_sparing(bench: Bench) -> Iterator[Row]:
    found = []
    for n_entrants, sd in _CELLS:
        n = bench.scaled(_N_PLANTED if n_entrants < 12 else _N_PLANTED // 3, at_least=2)
        found.append(spared(n_entrants, sd, n))
        size = f"{n_entrants} entrants, sd {sd} Elo, {n} times"
        yield from _spared_rows(size, found[-1], at_most(0.60), at_least(0.93))
    mean = Spared(*np.mean(found, axis=0).tolist())
    yield from _spared_rows("mean of these", mean, at_most(0.52), at_least(0.95))


def _spared_rows(size: str, found: Spared, most: object, least: object) -> Iterator[Row]:
    yield stated(f"asked of all: {size}", f"{found.asked:.1%}", found.asked, most)
    yield stated(f"kept of right decisions: {size}", f"{found.kept:.1%}", found.kept, least)
    yield stated(f"a wrong decision: {size}", f"{found.wrong:.1%}", found.wrong)


def _of_coverage(n: int) -> Iterator[Row]:
    for name, strengths in (
        ("4 entrants, 0 to 208 Elo", np.array([-0.6, -0.2, 0.2, 0.6])),
        ("5 entrants, 0 to 140 Elo", _LADDER),
        ("8 equals", equals(8)),
    ):
        found = covered(strengths, n)
        mean, worst = float(found.of_pairs.mean()), float(found.of_pairs.min())
        what = f"widened intervals of differences that hold: {name}"
        yield stated(f"{what}, mean", f"{mean:.1%}", mean, between(0.93, 0.975))
        yield stated(f"{what}, worst pair", f"{worst:.1%}", worst, at_least(0.92))
        yield stated(f"{what}, all at once", f"{found.of_all:.1%}", found.of_all, at_least(0.94))
