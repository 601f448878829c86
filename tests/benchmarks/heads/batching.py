"""Prompts that are answered together, against one at a time."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from commands.backends.hydra._net import HydraNet
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import Work, per_second, rate
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, compared

BATCHES: Final = (8, 16)
N_TOKENS: Final = 12  # of each answer


def measure(bench: Bench, net: HydraNet) -> Iterator[Row]:
    """Compare tokens per second, by all heads and by one."""
    n_tokens = bench.scaled(N_TOKENS, at_least=4)
    for name, bypass_jury in (("full PoE", False), ("one head (bypass_jury)", True)):
        works = {n: Work(n, n_tokens, bypass_jury) for n in (1, *BATCHES)}
        rounds = interleaved(
            bench.n_rounds, {str(n): partial(rate, net, work) for n, work in works.items()}
        )
        for n in BATCHES:
            yield compared(
                f"{name}, {n} prompts together",
                per_second(rounds.median(str(n))),
                f"one at a time: {per_second(rounds.median('1'))}",
                rounds.ratio(str(n), "1"),
            )
