"""Answers to prompts of random tokens: how they are decoded, and how fast."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

import torch

from commands.backends.hydra.decoding import HydraRow
from commands.backends.hydra.net import HydraNet
from tests.benchmarks.bench import Bench
from tests.benchmarks.rounds import cpu_seconds, interleaved, seconds
from tests.benchmarks.table import Row, compared
from tests.support.weights.hydra import HydraDecoding, decode, start_row

N_PROMPT_TOKENS: Final = 8  # few: it is decoding that is measured
TEMPERATURE: Final = 0.98
BATCHES: Final = (8, 16)
N_TOGETHER: Final = 12  # of each answer


class Work(NamedTuple):
    """What there is to answer, and how."""

    n_prompts: int
    n_tokens: int  # of each answer; no token ends one
    bypass_jury: bool = False
    temperature: float | None = TEMPERATURE

    @property
    def decoding(self) -> HydraDecoding:
        """Return what all rows have in common."""
        return HydraDecoding(self.temperature, self.n_tokens)

    def rows(self, net: HydraNet) -> list[HydraRow]:
        """Start the answers, with the same prompts and seeds every time."""
        stream = torch.Generator("cpu").manual_seed(0)
        size = (self.n_prompts, N_PROMPT_TOKENS)
        prompts = torch.randint(
            net.lm_head.out_features, size, generator=stream, device=stream.device
        )
        return [
            start_row(ids, seed=seed, n_heads=net.n_heads, bypass_jury=self.bypass_jury)
            for seed, ids in enumerate(prompts.tolist())
        ]


def rate(net: HydraNet, work: Work) -> float:
    """Answer; return tokens per second, of the processor where it does the work."""
    rows = work.rows(net)
    took_s = seconds_on(net.device, lambda: decode(net, rows, work.decoding))
    return work.n_prompts * work.n_tokens / took_s


def seconds_on(device: torch.device, act: Callable[[], object]) -> float:
    """Return how long a processor works on something, or how long it takes on a GPU.

    Others use the processor, too. What is done on a GPU must end by waiting for it.
    """
    return (cpu_seconds if device.type == "cpu" else seconds)(act)


def per_second(rate: float) -> str:
    """Return a rate in words."""
    return f"{rate:.1f} tokens/s"


def measure(bench: Bench, net: HydraNet) -> Iterator[Row]:
    """Compare prompts that are answered together with one at a time, by all heads and by one."""
    n_tokens = bench.scaled(N_TOGETHER, at_least=4)
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
