"""Bradley-Terry with its bootstrap: against logistic regressions of drawn rows, and `evalica`.

Every battle has a prompt of its own, as in an arena. Others fit a few resamples, and what these
take is scaled to all. Run by itself, the module rates, so that it can be weighed.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from ledger.events.ratings import BradleyTerryParameters, IntervalKind
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.rate import rate
from tests.benchmarks.bench import Bench
from tests.benchmarks.commands.alone import alone
from tests.benchmarks.ratings.arena import by_popularity
from tests.benchmarks.ratings.logistic import fit_resamples
from tests.benchmarks.rounds import Rounds, interleaved, seconds
from tests.benchmarks.table import Demand, Row, at_least, at_most, compared, stated

Rival: TypeAlias = Callable[[Battles, int], object]
"""Fits so many resamples."""

_N_SAMPLED: Final = 5  # resamples that rivals fit
_ROOT: Final = Path(__file__).parents[3]


class Size(NamedTuple):
    """What is rated, and what is asked."""

    n_entrants: int
    n_battles: int
    n_resamples: int
    most_s: Demand
    times: Demand | None = None  # as fast as regressions of drawn rows

    @property
    def name(self) -> str:
        """What the table calls it."""
        size = f"{self.n_entrants} x {self.n_battles:,}"
        return f"Bradley-Terry of {size}, {self.n_resamples:,} resamples"


def measure(bench: Bench) -> Iterator[Row]:
    """Compare at two sizes, and weigh a third."""
    small, large, huge = map(bench.scaled, (20_000, 100_000, 2_000_000))
    n = bench.scaled(1_000, at_least=2)
    yield from _compared(bench, Size(20, small, n, at_most(0.2)))
    yield from _compared(bench, Size(130, large, n, at_most(3), at_least(80)))
    yield from _weighed(bench, Size(200, huge, n, at_most(8)))


def _compared(bench: Bench, size: Size) -> Iterator[Row]:
    times = _timed(bench, size, _RIVALS)
    yield from _told(size, times)
    for rival, asked in zip(_RIVALS, (size.times, None, None), strict=True):
        baseline = f"{rival}: {times.median(rival):,.2f} s"
        figure = f"{times.median('bayesian'):.2f} s"
        yield compared(size.name, figure, baseline, times.ratio(rival, "bayesian"), asked)


def _weighed(bench: Bench, size: Size) -> Iterator[Row]:
    yield from _told(size, _timed(bench, size, {}))
    numbers = map(str, (size.n_entrants, size.n_battles, size.n_resamples))
    peak_mb = alone([sys.executable, "-m", __name__, *numbers], _ROOT).peak_mb
    yield stated("its memory, battles included", f"{peak_mb:,.0f} MB", peak_mb, at_most(1_000))


def _timed(bench: Bench, size: Size, rivals: Mapping[str, Rival]) -> Rounds:
    battles, n_sampled = by_popularity(size.n_entrants, size.n_battles), bench.scaled(_N_SAMPLED)

    def ours(interval: IntervalKind) -> float:
        return seconds(lambda: _rate(battles, interval, size.n_resamples))

    def scaled_up(rival: Rival) -> float:
        return size.n_resamples / n_sampled * seconds(lambda: rival(battles, n_sampled))

    return interleaved(
        bench.n_rounds,
        {
            "bayesian": lambda: ours("bayesian"),
            "multinomial": lambda: ours("multinomial"),
            **{name: partial(scaled_up, rival) for name, rival in rivals.items()},
        },
    )


def _told(size: Size, times: Rounds) -> Iterator[Row]:
    took_s, multinomial_s = times.median("bayesian"), times.median("multinomial")
    yield stated(size.name, f"{took_s:.2f} s", took_s, size.most_s)
    yield stated(f"{size.name}, multinomial", f"{multinomial_s:.2f} s", multinomial_s)


def _rate(battles: Battles, interval: IntervalKind, n_resamples: int) -> None:
    rate(battles, BradleyTerryParameters(interval=interval, resamples=n_resamples))


def _evalica(battles: Battles, n_resamples: int) -> object:
    evalica = import_module("evalica")
    a, b = ([battles.entrants[place] for place in side] for side in (battles.a, battles.b))
    winners = [evalica.Winner(int(1 + (score == 0) - (score == 0.5))) for score in battles.score]
    return evalica.bootstrap(
        evalica.bradley_terry,
        a,
        b,
        winners,
        n_resamples=n_resamples,
        bootstrap_method="percentile",
        random_state=7,
    )


_RIVALS: Final[Mapping[str, Rival]] = MappingProxyType(
    {
        "logistic regression of drawn rows": fit_resamples,
        "the same, equal rows merged": partial(fit_resamples, merges=True),
        "evalica": _evalica,
    }
)

if __name__ == "__main__":
    n_entrants, n_battles, n_resamples = map(int, sys.argv[1:])
    _rate(by_popularity(n_entrants, n_battles), "bayesian", n_resamples)
