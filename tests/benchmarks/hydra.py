"""A Hydra of random weights: how fast it answers, and what it weighs.

It is measured in a process of its own, since nothing else here needs torch, which takes seconds to
import and threads to run.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

from tests.benchmarks.bench import Bench
from tests.benchmarks.row import Row


def measure(bench: Bench) -> Iterator[Row]:
    """Hand on what the process measures."""
    command = [sys.executable, "-m", "tests.benchmarks.heads"]
    of_bench = [str(bench.folder), str(bench.scale), str(bench.n_rounds)]
    with subprocess.Popen([*command, *of_bench], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            yield Row(*json.loads(line))
    if process.returncode:
        raise RuntimeError(f"the process that measures a Hydra exited with {process.returncode}")
