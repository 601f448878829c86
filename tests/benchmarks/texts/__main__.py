"""Measure how fast texts are weighed; write rows as JSON, one a line, as they come."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.random_hydra import Shape, random_model, scaled
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_least, compared
from tests.benchmarks.texts.ways import (
    arriving,
    by_length,
    documents,
    one_by_one,
    questions,
    rate,
    together,
)

SHAPE: Final = Shape(8, 4, 64, 704, 2_048)  # 7.5 M parameters
N_QUESTIONS: Final = 4
N_CONTEXT: Final = 600  # tokens
N_DOCUMENTS: Final = 64
BATCH_TOKENS: Final = 4_096


def main(folder: str, scale: str, n_rounds: str) -> None:
    """Measure on the bench that the arguments describe."""
    bench = Bench(Path(folder), float(scale), int(n_rounds))
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the quickest for weights this small
    for row in _rows(bench):
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


def _rows(bench: Bench) -> Iterator[Row]:
    model, rng = random_model(scaled(SHAPE, bench)), np.random.default_rng(0)
    asked = questions(
        rng, bench.scaled(N_QUESTIONS), n_context=bench.scaled(N_CONTEXT, at_least=24)
    )
    rounds = interleaved(
        bench.n_rounds,
        {
            "together": partial(rate, model, asked, partial(together, BATCH_TOKENS)),
            "one by one": partial(rate, model, asked, one_by_one),
        },
    )
    yield compared(
        f"questions of 4 choices behind {N_CONTEXT} tokens",
        f"{rounds.median('together') / 4:,.1f} questions/s",
        f"one forward pass a choice: {rounds.median('one by one') / 4:,.1f} questions/s",
        rounds.ratio("together", "one by one"),
        at_least(2.5),
    )
    mixed = documents(rng, bench.scaled(N_DOCUMENTS), bench.scaled(512, at_least=16))
    rounds = interleaved(
        bench.n_rounds,
        {
            "by length": partial(rate, model, mixed, partial(by_length, BATCH_TOKENS)),
            "arriving": partial(rate, model, mixed, partial(arriving, BATCH_TOKENS)),
        },
    )
    yield compared(
        "texts of 8 to 512 tokens, in batches by length",
        f"{rounds.median('by length'):,.1f} texts/s",
        f"as they arrive: {rounds.median('arriving'):,.1f} texts/s",
        rounds.ratio("by length", "arriving"),
        at_least(1.5),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
