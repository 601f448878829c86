"""The same on a GPU, at 7B shapes: how near it comes to what memory allows."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import torch

from commands.backends.hydra._net import HydraNet
from commands.errors import counted
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import Work, per_second, rate
from tests.benchmarks.heads.random_hydra import SEVEN_B, random_hydra, random_model, scaled
from tests.benchmarks.heads.references import decode_jointly
from tests.benchmarks.heads.traffic import bytes_read
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, compared

N_TOKENS: Final = 64  # of each answer
STRENGTH: Final = 0.3  # of LoRA
N_COPIED: Final = 2**30  # bytes
N_COPIES: Final = 10


def measure(bench: Bench) -> Iterator[Row]:
    """Compare tokens per second with the memory's bandwidth, where there is a GPU."""
    works = [Work(n, bench.scaled(N_TOKENS, at_least=4)) for n in (1, 8)]
    if not torch.cuda.is_available():
        yield from (Row(_name(work), "no GPU here", "", "", "", "") for work in works)
        return
    with torch.device("cuda"):
        net = random_hydra(random_model(scaled(SEVEN_B, bench), torch.bfloat16), STRENGTH)
    for work in works:
        yield _compared(bench, net, work)


def _name(work: Work) -> str:
    return f"full PoE of {counted(work.n_prompts, 'prompt')} at 7B shapes, bfloat16, on a GPU"


def _compared(bench: Bench, net: HydraNet, work: Work) -> Row:
    torch.cuda.reset_peak_memory_stats()
    n_bytes = bytes_read(net, partial(rate, net, work))
    peak_gb = torch.cuda.max_memory_allocated() / 1e9
    n_tokens = work.n_prompts * work.n_tokens

    def allowed() -> float:
        return n_tokens * bandwidth(net.device) / n_bytes

    rounds = interleaved(
        bench.n_rounds,
        {
            "drafts": partial(rate, net, work),
            "jointly": partial(rate, net, work, decode_jointly),
            "allowed": allowed,
        },
    )
    share, speed = rounds.ratio("drafts", "allowed"), per_second(rounds.median("drafts"))
    return compared(
        _name(work),
        f"{speed}, {share:.0%} of what memory allows, in {peak_gb:.1f} GB",
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
