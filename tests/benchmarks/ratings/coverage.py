"""How often 95 % intervals hold the truth, where answers are lucky on some prompts.

Those over prompts are to hold it as often as they say. Beside them stand those over battles, and
the spread over orders of play taken for an interval, which fall short.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ledger.events.ratings import BradleyTerryParameters, EloParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.elo.rate import prompts_met, rate
from projections.ratings.elo.uncertainty import BOOTSTRAPS, bootstrap
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Demand, Row, between, stated
from tests.support.builders.battles import Coverage, bradley_terry, coverage, tournaments, truth

_N_TOURNAMENTS: Final = 300
_HONEST: Final = between(0.93, 0.97)
_OVER_PROMPTS: Final[Mapping[str, BradleyTerryParameters]] = MappingProxyType(
    {
        "sandwich by prompts": BradleyTerryParameters(),
        "Bayesian bootstrap over prompts": BradleyTerryParameters(interval="bayesian"),
        "multinomial bootstrap over prompts": BradleyTerryParameters(interval="multinomial"),
    }
)
_OVER_BATTLES: Final = BradleyTerryParameters(unit="battles")
_ELO: Final = EloParameters(bootstraps=BOOTSTRAPS)


def measure(bench: Bench) -> Iterator[Row]:
    """Rate tournaments whose truth is known."""
    drawn, true = tournaments(bench.scaled(_N_TOURNAMENTS, at_least=2)), truth()
    for name, parameters in _OVER_PROMPTS.items():
        yield _row(name, coverage(bradley_terry(drawn, parameters), true), _HONEST)
    yield _row("sandwich by battles", coverage(bradley_terry(drawn, _OVER_BATTLES), true))
    yield from _of_elo(drawn)


def _of_elo(drawn: list[Battles]) -> Iterator[Row]:
    """Measure Elo's intervals; what it estimates is its mean over such tournaments."""
    rated = [rate(battles, _ELO, [_ELO.k])[_ELO.k] for battles in drawn]
    means = np.array([ratings.mean() for ratings in rated])
    true = means.mean(axis=0)
    resampled = np.array([_interval(*each) for each in zip(drawn, means, strict=True)])
    yield _row("Elo's bootstrap over prompts", coverage(resampled, true), _HONEST)
    spread = 1.96 * np.array([ratings.order_sem() for ratings in rated])
    of_orders = np.stack([means - spread, means + spread], axis=2)
    yield _row("Elo's spread over orders of play", coverage(of_orders, true))


def _interval(battles: Battles, means: Floats) -> Floats:
    found = bootstrap(battles, _ELO, k=_ELO.k)
    assert found is not None
    return found.interval(means, prompts_met(battles))


def _row(name: str, found: Coverage, asked: Demand | None = None) -> Row:
    figure = f"{found.share:.1%} +- {found.error:.1%}"
    return stated(f"95 % intervals that hold the truth: {name}", figure, found.share, asked)
