"""All benchmarks, by name.

To add one, write a module with `measure(bench) -> Iterator[Row]` and name it here. Those that
read a long history share `bench.long_ledger()`, a million events that are written once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from tests.benchmarks import apart
from tests.benchmarks.bench import Bench
from tests.benchmarks.commands import (
    asking,
    cold,
    importing,
    judging,
    reporting,
    sets,
    status,
    viewing,
)
from tests.benchmarks.ledger import batches, growth, single, verify
from tests.benchmarks.ratings import (
    bradley_terry,
    coverage,
    elo,
    elo_coverage,
    fragility,
    judges,
    sureness,
    truth,
)
from tests.benchmarks.table import Row

Benchmark: TypeAlias = Callable[[Bench], Iterator[Row]]

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    "single": single.measure,
    "batches": batches.measure,
    "verify": verify.measure,
    "status": status.measure,
    "growth": growth.measure,
    "report": reporting.measure,
    "view": viewing.measure,
    "judging": judging.measure,
    "asking": asking.measure,
    "hydra": apart.measure_hydra,
    "reading": apart.measure_reading,
    "elo": elo.measure,
    "bradley-terry": bradley_terry.measure,
    "fragility": fragility.measure,
    "coverage": coverage.measure,
    "elo-coverage": elo_coverage.measure,
    "truth": truth.measure,
    "sureness": sureness.measure,
    "judges": judges.measure,
    "cold": cold.measure,
    "importing": importing.measure,
    "sets": sets.measure,
}
