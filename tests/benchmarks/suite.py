"""All benchmarks, by name.

To add one, write a module with `measure(bench) -> Iterator[Row]` and name it here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from tests.benchmarks import apart
from tests.benchmarks.bench import Bench
from tests.benchmarks.commands import asking, cold, reporting
from tests.benchmarks.ledger import growth, verify
from tests.benchmarks.ratings import (
    coverage,
    elo,
    elo_coverage,
    judges,
    looks,
    sureness,
    truth,
)
from tests.benchmarks.table import Row

Benchmark: TypeAlias = Callable[[Bench], Iterator[Row]]

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    "verify": verify.measure,
    "growth": growth.measure,
    "report": reporting.measure,
    "asking": asking.measure,
    "hydra": apart.measure_hydra,
    "elo": elo.measure,
    "coverage": coverage.measure,
    "elo-coverage": elo_coverage.measure,
    "truth": truth.measure,
    "sureness": sureness.measure,
    "looks": looks.measure,
    "false-decisions": looks.measure_errors,
    "judges": judges.measure,
    "cold": cold.measure,
}
