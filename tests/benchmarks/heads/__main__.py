"""Measure how weights decode; write rows as JSON, one a line, as they come."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.benchmarks.bench import Bench
from tests.benchmarks.heads import answering, memory, plain, speculation
from tests.benchmarks.heads.random_hydra import (
    SEVEN_B,
    SMALL,
    random_hydra,
    random_model,
    scaled,
)
from tests.benchmarks.heads.share import sampling_share
from tests.benchmarks.table import Row

WEAK, TYPICAL, STRONG = 0.01, 0.3, 0.8  # LoRA, as a share of the weights


def main(folder: str, scale: str, n_rounds: str) -> None:
    """Measure on the bench that the arguments describe."""
    bench = Bench(Path(folder), float(scale), int(n_rounds))
    torch.manual_seed(0)
    for row in _rows(bench):
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


def _rows(bench: Bench) -> Iterator[Row]:
    model = random_model(scaled(SMALL, bench))
    nets = {strength: random_hydra(model, strength) for strength in (WEAK, TYPICAL, STRONG)}
    yield from speculation.measure(bench, nets)
    yield from answering.measure(bench, nets[TYPICAL])
    yield from memory.measure(bench)
    yield from plain.measure(bench, model)
    wide = SMALL._replace(vocabulary_size=SEVEN_B.vocabulary_size)
    yield sampling_share(bench, random_model(scaled(wide, bench)), 64)


if __name__ == "__main__":
    main(*sys.argv[1:])
