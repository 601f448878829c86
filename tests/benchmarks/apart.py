"""The benchmark that needs torch, in a process of its own: nothing else here needs it.

torch takes seconds to import, and threads to run.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row


def measure_hydra(bench: Bench) -> Iterator[Row]:
    """Hand on what `heads` measures, which writes a row a line, in JSON, as they come."""
    of_bench = [str(bench.folder), str(bench.scale), str(bench.n_rounds)]
    command = [sys.executable, "-m", "tests.benchmarks.heads", *of_bench]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            yield Row(*json.loads(line))
    if process.returncode:
        raise RuntimeError(f"the process that measures exited with {process.returncode}")
