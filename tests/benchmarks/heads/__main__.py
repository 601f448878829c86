"""Measure how weights decode; write rows as JSON, one a line, as they come."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.benchmarks.bench import Bench
from tests.benchmarks.heads import answering, memory, plain
from tests.benchmarks.heads.random_hydra import SMALL, random_hydra, random_model, scaled
from tests.benchmarks.table import Row


def main(folder: str, scale: str, n_rounds: str) -> None:
    """Measure on the bench that the arguments describe."""
    bench = Bench(Path(folder), float(scale), int(n_rounds))
    torch.manual_seed(0)
    for row in _rows(bench):
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


def _rows(bench: Bench) -> Iterator[Row]:
    model = random_model(scaled(SMALL, bench))
    yield from answering.measure(bench, random_hydra(model))
    yield from memory.measure(bench)
    yield from plain.measure(bench, model)


if __name__ == "__main__":
    main(*sys.argv[1:])
