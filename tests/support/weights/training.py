"""A distributed training of tiny weights that evaluates every second step; run by torchrun.

Every process writes what it got, as JSON, to <folder>/<rank>.json.
"""

import json
import os
import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from commands.backends.weights.folder import load_model, load_tokenizer
from tests.support.builders.evaluating import Capitals, Letters
from tourney import Evaluator, ExecutionSpec

TEXT = "a patient asks about a dose, and how often to take it"


class Evaluating(TrainerCallback):
    """Evaluates the model every second step, on all processes, as if there were one."""

    def __init__(self, folder: Path) -> None:
        """Keep results in a folder."""
        self.folder = folder
        self.found: list[object] = []

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002  # the callback's own
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002  # as above
        **others: object,  # noqa: ARG002  # as above
    ) -> None:
        """Evaluate, and record."""
        if state.global_step % 2:
            return
        spec = ExecutionSpec("ddp", root=self.folder)
        evaluations = [Letters(TEXT, TEXT[::-1]), Capitals(("a dose?", "yes"))]
        evaluator = Evaluator.from_trainer(TRAINER, evaluations, spec)
        scores = evaluator.evaluate()
        was_done = evaluator.done
        evaluator()
        self.found.append([state.global_step, was_done, evaluator.done, scores])


if __name__ == "__main__":
    weights, place = map(Path, sys.argv[1:3])
    tokenizer = load_tokenizer(weights)
    tokens = torch.tensor(tokenizer(TEXT)["input_ids"])
    TRAINER = Trainer(
        load_model(weights, torch.float32),
        TrainingArguments(
            output_dir=str(place / "out"),
            max_steps=4,
            per_device_train_batch_size=1,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=1,
        ),
        train_dataset=[{"input_ids": tokens, "labels": tokens}] * 8,
        processing_class=tokenizer,
    )
    callback = Evaluating(place)
    TRAINER.add_callback(callback)
    TRAINER.train()
    rank = os.environ.get("RANK", "0")
    (place / f"{rank}.json").write_text(json.dumps(callback.found), encoding="utf-8")
