"""A jury's pass over a block of drafts: all heads in one batch, against one head after another."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import torch

from commands.backends.hydra._net import HydraNet
from commands.errors import counted
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import GAMMA
from tests.benchmarks.heads.references import Jury
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, compared

N_READ: Final = 64  # tokens that are read before
N_PASSES: Final = 4  # a round


def measure(bench: Bench, net: HydraNet) -> Iterator[Row]:
    """Compare how long a pass takes."""
    heads = tuple(range(net.n_heads - 1))
    for n_rows in (1, 8):
        together = [_jury(net, heads, n_rows)]
        apart = [_jury(net, (head,), n_rows) for head in heads]
        block = torch.randn(n_rows, GAMMA, net.lm_head.in_features)
        rounds = interleaved(
            bench.n_rounds,
            {
                "together": partial(_rate, net, together, block),
                "apart": partial(_rate, net, apart, block),
            },
        )
        yield compared(
            f"a jury's pass over {GAMMA} drafts on {counted(n_rows, 'prompt')}",
            f"{rounds.median('together'):.1f}/s",
            f"one head after another: {rounds.median('apart'):.1f}/s",
            rounds.ratio("together", "apart"),
        )


@torch.inference_mode()
def _jury(net: HydraNet, heads: tuple[int, ...], n_rows: int) -> Jury:
    jury = Jury(net, [heads] * n_rows)
    jury.read(torch.randn(n_rows, N_READ, net.lm_head.in_features))
    return jury


@torch.inference_mode()
def _rate(net: HydraNet, juries: Sequence[Jury], block: torch.Tensor) -> float:
    """Return how often a second all juries read a block, logits included."""

    def passes() -> None:
        for jury in [*juries] * N_PASSES:
            net.logits(jury.read(block))
            jury.forget(GAMMA)

    return N_PASSES / seconds(passes)
