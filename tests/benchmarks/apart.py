"""Benchmarks that need torch, each in a process of its own: nothing else here needs it.

torch takes seconds to import, and threads to run.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row


def rows_of(module: str, bench: Bench) -> Iterator[Row]:
    """Hand on what a module measures, which writes a row a line, in JSON, as they come."""
    of_bench = [str(bench.folder), str(bench.scale), str(bench.n_rounds)]
    command = [sys.executable, "-m", module, *of_bench]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            yield Row(*json.loads(line))
    if process.returncode:
        raise RuntimeError(f"{module}, which measures, exited with {process.returncode}")


def measure_hydra(bench: Bench) -> Iterator[Row]:
    """Hand on what the process measures."""
    yield from rows_of("tests.benchmarks.heads", bench)


def measure_reading(bench: Bench) -> Iterator[Row]:
    """Hand on what the process measures."""
    yield from rows_of("tests.benchmarks.texts", bench)
