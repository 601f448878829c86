"""A training that is evaluated as it goes: its curve, from one command, and nothing else of it."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import (
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

import tourney
from commands.backends.jobs.evaluator import Evaluator
from commands.backends.jobs.job import ExecutionSpec
from commands.backends.jobs.subject import weights_digest
from commands.backends.weights.folder import load_model, load_tokenizer
from commands.settings.schema import GenerationSection
from ledger.identity import Digest
from tests.support.builders.evaluating import Capitals, Endings, Letters
from tests.support.command_line.launching import launch

FLOAT32 = GenerationSection(dtype="float32", device="cpu")
EVALUATIONS = (
    (Capitals(("a dose?", "yes"), ("a patient?", "no")), {"temperature": 1.0}),
    Endings(("a patient asks", (" about", " a dose"), 0), ("a dose", (" a", " of"), 1)),
    Letters("a patient asks about a dose"),
)
STEPS = [2, 4]


class Sentences(Dataset[dict[str, torch.Tensor]]):
    """Texts of three tokens, which differ."""

    def __len__(self) -> int:
        """Count them."""
        return 8

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return one, to be predicted."""
        ids = torch.tensor([index % 7, index % 5, index % 3])
        return {"input_ids": ids, "labels": ids}


class EverySecond(TrainerCallback):
    """Does something every second step."""

    def __init__(self) -> None:
        """Do nothing yet."""
        self.act: Callable[[], object] = lambda: None

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002  # as transformers calls it
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002  # as above
        **_: object,
    ) -> None:
        """Do it."""
        if state.global_step % 2 == 0:
            self.act()


def trained(weights: Path, folder: Path, spec: ExecutionSpec | None) -> Digest:
    """Train for four steps, evaluated if there is a job for it; return the weights' digest."""
    torch.manual_seed(7)
    callback = EverySecond()
    model = load_model(weights, torch.float32)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            max_steps=4,
            per_device_train_batch_size=2,
            learning_rate=1e-2,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Sentences(),
        processing_class=load_tokenizer(weights),
        callbacks=[callback],
    )
    if spec:
        callback.act = Evaluator.from_trainer(trainer, EVALUATIONS, spec, FLOAT32)
    trainer.train()
    return weights_digest(model)


def test_a_training_has_its_curve_and_ends_as_without_it(weights: Path, tmp_path: Path) -> None:
    """Evaluations draw no random number of the training's, and leave its weights alone."""
    spec = ExecutionSpec("probe", root=tmp_path)
    evaluated = trained(weights, tmp_path, spec)
    ledger = spec.folder / "evaluations.db"

    told = json.loads(
        launch(tmp_path, "project", "metrics", "--curve", "--json", "-l", str(ledger)).stdout
    )

    curve = [row for row in told["rows"] if row["metric"] == "bits_per_byte"]
    assert [(row["training"], row["step"]) for row in curve] == [("probe", n) for n in STEPS]
    assert len({row["value"] for row in curve}) == len(STEPS)
    assert {row["dtype"] for row in curve} == {"float32"}
    assert tourney.read(ledger).curve().rows == tuple(
        tourney.CurveRow(**row) for row in told["rows"]
    )
    assert evaluated == trained(weights, tmp_path, None)
