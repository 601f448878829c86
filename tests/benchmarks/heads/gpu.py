"""Measure weights of 7B shapes on a GPU, in bfloat16; without one, say what would be measured.

The weights are random, as are the prompts: what is measured is time and memory.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

import torch
from transformers.cache_utils import DynamicLayer

from commands.backends.hydra.decoding import HydraSteps
from commands.backends.hydra.net import HydraNet
from commands.backends.weights.sampling import SamplingSettings
from commands.errors import counted
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.heads import plain
from tests.benchmarks.heads.answering import Work, per_second, rate
from tests.benchmarks.heads.memory import n_bytes
from tests.benchmarks.heads.random_hydra import N_HEADS, SEVEN_B, Shape, random_hydra, random_model
from tests.benchmarks.heads.references import decode_jointly
from tests.benchmarks.heads.share import sampling_share
from tests.benchmarks.heads.traffic import bytes_read, cache_bytes
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, compared, machine, renewed, section
from tests.support.weights.hydra import HeadRoles, head_row

TABLE: Final = Path(__file__).parents[3] / "data" / "benchmarks-gpu.md"
PLAN: Final = """\
- plain weights, greedy and sampled, 8 and 32 rows: tokens/s, beside transformers' own generate
- the share of a step in sampling, 64 rows, 100,352 tokens of vocabulary
- memory of a Hydra of nine heads and one for uncertainty, beside 21.9 GB + 0.918 MB per token
- the product of experts, 1, 8 and 32 prompts: tokens/s, beside the same product without drafts,
  and what the memory's bandwidth allows
"""
PAPER_GB: Final = 21.9  # of weights, of ten heads
PAPER_TOKEN_MB: Final = 0.918  # of caches
N_TOKENS: Final = 64  # of each answer
N_COLUMNS: Final = 8  # that a token's memory is the mean of
STRENGTH: Final = 0.3  # of LoRA
N_COPIED: Final = 2**30  # bytes
N_COPIES: Final = 10


def main() -> None:
    """Measure where there is a GPU, and write the table."""
    say(f"At 7B shapes in bfloat16, with random weights:\n{PLAN}")
    if not torch.cuda.is_available():
        say("no GPU")
        return
    with TemporaryDirectory() as folder:
        report(Bench(Path(folder)), SEVEN_B, TABLE)


def report(bench: Bench, shape: Shape, table: Path) -> None:
    """Measure weights of a shape on the first GPU, and write the table."""
    facts = {"GPU": torch.cuda.get_device_name(), **machine(bench.folder)}
    rows = []
    for row in measure(bench, shape, torch.device("cuda"), torch.bfloat16):
        say(f"  {' | '.join(row)}")
        rows.append(row)
    table.write_text(renewed("", "gpu", section(facts, rows), order=["gpu"]), encoding="utf-8")
    say(f"written: {table}")


def measure(bench: Bench, shape: Shape, device: torch.device, dtype: torch.dtype) -> Iterator[Row]:
    """Measure weights of a shape on a device."""
    torch.manual_seed(0)
    with device:  # no longer: what is measured chooses its devices by itself
        model = random_model(shape, dtype)
    yield from plain.measure(bench, model)
    yield sampling_share(bench, model, 64)
    with device:
        ten = random_hydra(model, STRENGTH, n_heads=N_HEADS + 1)
    yield memory_row(ten)
    del ten
    with device:
        net = random_hydra(model, STRENGTH)
    del model
    for n_prompts in (1, 8, 32):
        yield _poe_row(bench, net, Work(n_prompts, bench.scaled(N_TOKENS, at_least=4)))


@torch.inference_mode()
def memory_row(net: HydraNet) -> Row:
    """Compare the bytes of weights, and of caches for each token, with the paper's.

    The last head is the one for uncertainty, which keeps nothing of the text.
    """
    ids = range(N_COLUMNS)
    row = head_row(ids, HeadRoles(0, tuple(range(1, net.n_heads - 1))), 0)
    steps = HydraSteps(net, [row], SamplingSettings(), beta=1.0)
    steps.next_tokens()
    of_prompt = sum(cache_bytes(cast("DynamicLayer", each)) for each in steps.cache.layers)
    of_token = of_prompt / N_COLUMNS
    weights_gb = n_bytes(net) / 1e9
    return compared(
        "memory of a Hydra of nine heads and one for uncertainty",
        f"{weights_gb:.2f} GB + {of_token / 1e6:.3f} MB per token",
        f"the paper: {PAPER_GB} GB + {PAPER_TOKEN_MB} MB per token",
        weights_gb / PAPER_GB,
    )


def _poe_row(bench: Bench, net: HydraNet, work: Work) -> Row:
    n_read = bytes_read(net, partial(rate, net, work))
    n_tokens = work.n_prompts * work.n_tokens
    rounds = interleaved(
        bench.n_rounds,
        {
            "drafts": partial(rate, net, work),
            "jointly": partial(rate, net, work, decode_jointly),
            "allowed": lambda: n_tokens * bandwidth(net.device) / n_read,
        },
    )
    share, speed = rounds.ratio("drafts", "allowed"), per_second(rounds.median("drafts"))
    return compared(
        f"full PoE of {counted(work.n_prompts, 'prompt')}",
        f"{speed}, {share:.0%} of what memory allows",
        f"without drafts: {per_second(rounds.median('jointly'))}",
        rounds.ratio("drafts", "jointly"),
    )


def bandwidth(device: torch.device) -> float:
    """Return how many bytes a second are read or written while a big tensor is copied."""
    source = torch.zeros(N_COPIED, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        for _ in range(N_COPIES):
            target.copy_(source)
        target[-1].item()  # waits for the device

    copy()
    return N_COPIES * 2 * N_COPIED / seconds(copy)


if __name__ == "__main__":
    main()
