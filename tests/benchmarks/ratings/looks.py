"""How often looks are wrong, what they spare, and whether intervals after them hold the truth.

Tournaments are those of `tests/support/builders/looks`, of 143 prompts and four looks. Beside the
decisions stand those of the same tournament asked in full and looked at once.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Demand, Row, at_least, at_most, between, stated
from tests.support.builders.looks import (
    LOGIT,
    Spared,
    all_pairs,
    blocks,
    covered,
    equals,
    false_share,
    spared,
    with_baseline,
)

_N_NULL: Final = 1_000
_N_PLANTED: Final = 150
_N_COVERED: Final = 400
_CELLS: Final = ((4, 120), (4, 200), (8, 150), (12, 150), (20, 150))  # entrants, sd in Elo points
_LADDER: Final = np.array([0.0, 20, 60, 120, 140]) / LOGIT


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


def _spared_rows(size: str, found: Spared, most: Demand, least: Demand) -> Iterator[Row]:
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
