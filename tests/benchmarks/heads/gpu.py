"""Measure weights of 7B shapes on a GPU, in bfloat16; without one, say what would be measured.

The weights are random, as are the prompts: what is measured is time and memory.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

import torch
from transformers.cache_utils import DynamicLayer

from commands.backends.hydra.decoding import HydraSteps
from commands.backends.hydra.net import HydraNet
from commands.backends.weights.sampling import SamplingSettings
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.heads import answering, plain
from tests.benchmarks.heads.memory import n_bytes
from tests.benchmarks.heads.random_hydra import N_HEADS, SEVEN_B, Shape, random_hydra, random_model
from tests.benchmarks.table import Row, compared, machine, renewed, section
from tests.support.weights.hydra import HeadRoles, head_row

TABLE: Final = Path(__file__).parents[3] / "data" / "benchmarks-gpu.md"
PLAN: Final = """\
- plain weights, greedy and sampled, 8 and 32 rows: tokens/s, beside transformers' own generate
- memory of a Hydra of nine heads and one for uncertainty, beside 21.9 GB + 0.918 MB per token
- the product of experts and one head, 8 and 16 prompts: tokens/s, beside one prompt at a time
"""
PAPER_GB: Final = 21.9  # of weights, of ten heads
PAPER_TOKEN_MB: Final = 0.918  # of caches
N_COLUMNS: Final = 8  # that a token's memory is the mean of


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
    with device:
        ten = random_hydra(model, n_heads=N_HEADS + 1)
    yield memory_row(ten)
    del ten
    with device:
        net = random_hydra(model)
    del model
    yield from answering.measure(bench, net)


@torch.inference_mode()
def memory_row(net: HydraNet) -> Row:
    """Compare the bytes of weights, and of caches for each token, with the paper's.

    The last head is the one for uncertainty, which keeps nothing of the text.
    """
    ids = range(N_COLUMNS)
    row = head_row(ids, HeadRoles(0, tuple(range(1, net.n_heads - 1))), 0)
    steps = HydraSteps(net, [row], SamplingSettings(), beta=1.0)
    steps.next_tokens()
    layers = (cast("DynamicLayer", each) for each in steps.cache.layers)
    of_prompt = sum(
        cast("torch.Tensor", each).nbytes for layer in layers for each in (layer.keys, layer.values)
    )
    of_token = of_prompt / N_COLUMNS
    weights_gb = n_bytes(net) / 1e9
    return compared(
        "memory of a Hydra of nine heads and one for uncertainty",
        f"{weights_gb:.2f} GB + {of_token / 1e6:.3f} MB per token",
        f"the paper: {PAPER_GB} GB + {PAPER_TOKEN_MB} MB per token",
        weights_gb / PAPER_GB,
    )


if __name__ == "__main__":
    main()
