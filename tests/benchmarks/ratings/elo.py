"""Elo over many orders of play and several K: against plain Python, and against `evalica`."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.ratings.elo.rate import rate
from projections.ratings.elo.uncertainty import BOOTSTRAPS, bootstrap
from tests.benchmarks.bench import Bench
from tests.benchmarks.ratings.arena import by_popularity, decided, round_robin
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Demand, Row, at_least, at_most, compared, stated

KS: Final = (1.0, 4.0, 8.0, 16.0, 32.0)
N_ORDERS: Final = 500


class Size(NamedTuple):
    """What is rated, and what is asked."""

    name: str
    battles: Battles
    n_sampled: int  # orders at one K that the slow ones play; their time is scaled up
    most_s: Demand
    times: Demand  # as fast as plain Python


def measure(bench: Bench) -> Iterator[Row]:
    """Compare at two sizes, and time what makes the intervals."""
    small = round_robin(4, bench.scaled(143))
    yield from _compared(
        bench, Size("4 x 858", small, bench.scaled(N_ORDERS), at_most(0.06), at_least(20))
    )
    large = by_popularity(130, bench.scaled(100_000))
    yield from _compared(bench, Size("130 x 100,000", large, 2, at_most(6), at_least(20)))
    yield from _resampled(bench, decided(small))


def _compared(bench: Bench, size: Size) -> Iterator[Row]:
    battles, n_orders = decided(size.battles), bench.scaled(N_ORDERS)
    parameters = EloParameters(permutations=n_orders)
    more = n_orders * len(KS) / size.n_sampled
    times = interleaved(
        bench.n_rounds,
        {
            "ours": lambda: seconds(lambda: rate(battles, parameters, KS)),
            "plain Python": lambda: more * seconds(_plain(battles, size.n_sampled)),
            "evalica": lambda: more * seconds(_evalica(battles, size.n_sampled)),
        },
    )
    ours_s = times.median("ours")
    name = f"Elo of {size.name} matches, {n_orders} orders x {len(KS)} K"
    yield stated(name, f"{ours_s * 1e3:,.0f} ms", ours_s, size.most_s)
    for rival, asked in (("plain Python", size.times), ("evalica", None)):
        baseline = f"{rival}: {times.median(rival):,.2f} s"
        yield compared(name, f"{ours_s * 1e3:,.0f} ms", baseline, times.ratio(rival, "ours"), asked)


def _resampled(bench: Bench, battles: Battles) -> Iterator[Row]:
    parameters = EloParameters(bootstraps=bench.scaled(BOOTSTRAPS))
    times = interleaved(
        bench.n_rounds,
        {"bootstrap": lambda: seconds(lambda: bootstrap(battles, parameters, k=parameters.k))},
    )
    taken_s = times.median("bootstrap")
    name = f"its intervals, {parameters.bootstraps} resamples of the prompts of 4 x 858"
    yield stated(name, f"{taken_s * 1e3:,.0f} ms", taken_s, at_most(0.2))


def _plain(battles: Battles, n_orders: int) -> Callable[[], object]:
    """Return what rates one order of play after the other, as the textbook does."""
    sides = (_names(battles, side) for side in (battles.a, battles.b))
    games = [*zip(*sides, battles.score.tolist(), strict=True)]
    rng = np.random.default_rng(7)

    def act() -> None:
        for _ in range(n_orders):
            ratings = dict.fromkeys(battles.entrants, 1400.0)
            for n in rng.permutation(len(games)):
                a, b, score = games[n]
                expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
                ratings[a] += 16 * (score - expected)
                ratings[b] += 16 * ((1 - score) - (1 - expected))

    return act


def _evalica(battles: Battles, n_orders: int) -> Callable[[], object]:
    """Return what rates one order after the other by a call of `evalica`."""
    evalica = import_module("evalica")
    a, b = (np.array(_names(battles, side)) for side in (battles.a, battles.b))
    a_won, rng = battles.score == 1, np.random.default_rng(7)

    def act() -> None:
        for _ in range(n_orders):
            order = rng.permutation(len(a))
            winners = [evalica.Winner.X if won else evalica.Winner.Y for won in a_won[order]]
            evalica.elo(a[order].tolist(), b[order].tolist(), winners, initial=1400.0, k=16.0)

    return act


def _names(battles: Battles, places: NDArray[np.intp]) -> list[str]:
    return [battles.entrants[place] for place in places]
