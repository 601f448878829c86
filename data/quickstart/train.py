"""Train the quickstart tournament's weights: a tiny OLMo 2, and a Hydra's LoRA shards for it.

The weights are trained on the bank's own gold answers, so their results mean nothing. They give a
first tournament real weights of a few megabytes that run on a CPU and differ in quality: a base
that knows a third of the answers, heads that know more, and a head that predicts correctness.

Run it as `python data/quickstart/train.py [--out DIR]`; the same machine gives the same files.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers.utils.logging import disable_progress_bar

from base import train_base
from fitting import say
from lessons import plan_curriculum
from prompts import HERE, Prompt, read_prompts
from report import report_files, report_quality
from shards import train_shards
from uncertainty import train_uncertainty

SEED = 20260425


def main() -> None:
    """Train everything, then report time, sizes, digests and the quality of responses."""
    arguments = parse_arguments()
    started_s = time.monotonic()
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers gives no hints here
    make_deterministic()
    prompts = read_prompts(arguments.bank)
    train(prompts, arguments.out)
    say(f"trained in {time.monotonic() - started_s:.0f} s")
    report_files(arguments.out)
    report_quality(prompts, arguments.out)


def parse_arguments() -> argparse.Namespace:
    """Parse --bank and --out."""
    parser = argparse.ArgumentParser(description="Train the quickstart tournament's weights.")
    parser.add_argument("--bank", type=Path, default=HERE.parent / "bank.jsonl")
    parser.add_argument("--out", type=Path, default=HERE)
    return parser.parse_args()


def make_deterministic() -> None:
    """Fix the seed, the algorithms and the number of threads that torch uses."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(2)


def train(prompts: Sequence[Prompt], out: Path) -> None:
    """Train and save the base under out/weights, and LoRA for its heads under out/hydra."""
    rng = np.random.default_rng(SEED)
    curriculum = plan_curriculum(prompts, rng=rng)
    train_base(prompts, curriculum.base, out / "weights", rng=rng)
    train_shards(out / "weights", curriculum, out / "hydra", seed=SEED)
    train_uncertainty(prompts, out, seed=SEED)


if __name__ == "__main__":
    main()
