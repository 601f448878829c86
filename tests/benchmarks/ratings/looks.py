"""How often looks are wrong, what they spare, and whether intervals after them hold the truth.

Tournaments are those of `tests/support/builders/looks`, of 143 prompts and four looks. Beside the
decisions stand those of the same tournament asked in full and looked at once.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from projections.intervals import Floats
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row, at_least, at_most, between, stated
from tests.support.builders.looks import (
    ALL_IN_BOTH,
    ANY_LOOKS,
    LOGIT,
    SOONER,
    Asked,
    Spared,
    blocks,
    covered,
    equals,
    false_share_of_stopped,
    false_shares,
    forecast_dollars,
    spared,
    with_baseline,
)

_N_NULL: Final = 3_000
_N_STOPPED: Final = 1_000
_N_PLANTED: Final = 150
_N_COVERED: Final = 400
_N_FORECAST: Final = 100
_CELLS: Final = ((4, 120), (4, 200), (8, 150), (12, 150), (20, 150))  # entrants, sd in Elo points
_LADDER: Final = np.array([0.0, 20, 60, 120, 140]) / LOGIT
_COUNTERBALANCED: Final = Asked(counterbalanced=True, looks=SOONER)
_DESIGNS: Final[Mapping[str, Asked]] = MappingProxyType(
    {
        "all pairs": ALL_IN_BOTH,
        "a baseline": Asked(with_baseline),
        "sparse = 4": Asked(sparse=4),
        "counterbalanced": _COUNTERBALANCED,
        'looks = "any"': Asked(looks=ANY_LOOKS),
    }
)


def measure_errors(bench: Bench) -> Iterator[Row]:
    """Look at tournaments of equals, and count those where one is called better."""
    n, n_stopped = (bench.scaled(each, at_least=2) for each in (_N_NULL, _N_STOPPED))
    worlds = {f"{n_entrants} equals": equals(n_entrants) for n_entrants in (4, 8, 12)}
    worlds |= {f"two blocks of {half}, 300 Elo apart": blocks(2 * half) for half in (2, 4, 6)}
    for (world, strengths), (name, asked) in product(worlds.items(), _DESIGNS.items()):
        yield from false_decisions(f"{world}, {name}", strengths, asked, n, n_stopped)


def false_decisions(
    what: str, strengths: Floats, asked: Asked, n: int, n_stopped: int
) -> Iterator[Row]:
    """Measure one kind of tournament; in a world of equals alone, all of 5 % may be spent."""
    due = between(0.0 if strengths.any() else 0.03, 0.06)
    found = false_shares(strengths, n, asked)
    what = f"{what}: one equal called better"
    yield stated(f"{what}, asked in full, {n:,} times", f"{found.in_full:.1%}", found.in_full, due)
    yield stated(f"{what} at some look, {n:,} times", f"{found.looks:.1%}", found.looks, due)
    share = false_share_of_stopped(strengths, n_stopped, asked)
    what = f"{what}, futile pairs stopped, {n_stopped:,} times"
    yield stated(what, f"{share:.1%}", share, at_most(0.06))


def measure(bench: Bench) -> Iterator[Row]:
    """Look at tournaments whose truth is known."""
    yield from _of_sparing(bench)
    yield from _of_forecasts(bench.scaled(_N_FORECAST, at_least=2))
    yield from _of_coverage(bench.scaled(_N_COVERED, at_least=2))


def _of_sparing(bench: Bench) -> Iterator[Row]:
    yield from _of_cells(bench, "both orders", ALL_IN_BOTH, Bounds(0.60, 0.93), Bounds(0.52, 0.95))
    name = "counterbalanced"
    yield from _of_cells(bench, name, _COUNTERBALANCED, Bounds(0.33, 0.86), Bounds(0.30, 0.90))
    n = bench.scaled(_N_PLANTED, at_least=2)
    found = spared(8, 150, n, Asked(looks=ANY_LOOKS))
    yield from _spared_rows(f'looks = "any", 8 entrants, sd 150 Elo, {n} times', found, NO_BOUNDS)
    found = spared(12, 150, n, Asked(with_baseline))
    size = f"a baseline of 12 entrants, sd 150 Elo, {n} times"
    yield from _spared_rows(size, found, Bounds(0.10, 0.87))
    kept = found.kept_of_design
    yield stated(f"kept of the baseline's in full: {size}", f"{kept:.1%}", kept, at_least(0.94))


class Bounds(NamedTuple):
    """Shares of the queries that are asked at most, and of decisions that are kept at least."""

    asked: float
    kept: float


NO_BOUNDS: Final = Bounds(1.0, 0.0)


def _of_cells(
    bench: Bench, name: str, asked: Asked, of_one: Bounds, of_mean: Bounds
) -> Iterator[Row]:
    found = []
    for n_entrants, sd in _CELLS:
        n = bench.scaled(_N_PLANTED if n_entrants < 12 else _N_PLANTED // 3, at_least=2)
        found.append(spared(n_entrants, sd, n, asked))
        size = f"{name}, {n_entrants} entrants, sd {sd} Elo, {n} times"
        yield from _spared_rows(size, found[-1], of_one)
    mean = Spared(*np.mean(found, axis=0).tolist())
    yield from _spared_rows(f"{name}, mean of these", mean, of_mean)


def _spared_rows(size: str, found: Spared, bounds: Bounds) -> Iterator[Row]:
    most, least = at_most(bounds.asked), at_least(bounds.kept)
    yield stated(f"asked of all: {size}", f"{found.asked:.1%}", found.asked, most)
    yield stated(f"kept of right decisions: {size}", f"{found.kept:.1%}", found.kept, least)
    yield stated(f"a wrong decision: {size}", f"{found.wrong:.1%}", found.wrong)


def _of_forecasts(n: int) -> Iterator[Row]:
    for name, asked in (("both orders", ALL_IN_BOTH), ("counterbalanced", _COUNTERBALANCED)):
        for n_entrants, sd in _CELLS[:-1]:
            found = forecast_dollars(n_entrants, sd, n, asked)
            figure = f"{found.holds:.0%}, {found.width:.0%} wide"
            what = f"{name}, {n_entrants} entrants, sd {sd} Elo, {n} times"
            yield stated(
                f"90 % intervals of dollars that hold: {what}", figure, found.holds, at_least(0.80)
            )


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
