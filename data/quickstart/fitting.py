"""Fit parameters to examples: AdamW, a rate that rises and falls, batches of like lengths."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from chat import IGNORED, Example

BATCH_SIZE = 8


class Course(NamedTuple):
    """How long and how fast one part of the training goes."""

    name: str
    rate: float
    n_epochs: int


class Batch(NamedTuple):
    """Examples of one length: padded on the right, where causal attention never looks."""

    inputs: torch.Tensor  # (B, T) token ids, or (B, T, D) states of a trunk
    labels: torch.Tensor  # (B, T), IGNORED where there is none


Loss = Callable[[Batch], torch.Tensor]
Checkpoints = Mapping[int, Callable[[], None]]  # what to do after so many steps


def say(message: str) -> None:
    """Tell the user on stderr how far the work is."""
    print(message, file=sys.stderr, flush=True)


def fit(
    weights: nn.Module,
    loss_of: Loss,
    epochs: Iterable[Sequence[Example]],
    *,
    course: Course,
    rng: np.random.Generator,
    checkpoints: Checkpoints = MappingProxyType({}),
) -> None:
    """Train the trainable parameters, the rate rising for an epoch, then falling."""
    parameters = [value for value in weights.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=course.rate, betas=(0.9, 0.95))
    n_steps = 0
    weights.train()
    for epoch, examples in enumerate(epochs):
        batches = make_batches(examples, rng=rng)
        losses = []
        for step, batch in enumerate(batches):
            done = epoch + step / len(batches)
            factor = min(done + 0.05, 1.05 - done / course.n_epochs)
            optimizer.param_groups[0]["lr"] = course.rate * factor
            losses.append(take_step(parameters, loss_of(batch), optimizer))
            n_steps += 1
            if n_steps in checkpoints:
                checkpoints[n_steps]()
        say(f"{course.name}: epoch {epoch + 1}/{course.n_epochs}, loss {np.mean(losses):.3f}")


def make_batches(examples: Sequence[Example], *, rng: np.random.Generator) -> list[Batch]:
    """Group examples of like length in batches, in a random order."""
    shuffled = [examples[index] for index in rng.permutation(len(examples))]
    by_length = sorted(shuffled, key=lambda example: len(example.inputs) // 16)
    batches = [
        by_length[start : start + BATCH_SIZE] for start in range(0, len(by_length), BATCH_SIZE)
    ]
    return [pad_examples(batches[index]) for index in rng.permutation(len(batches))]


def pad_examples(examples: Sequence[Example]) -> Batch:
    """Pad examples to one length."""
    inputs = pad_sequence([example.inputs for example in examples], batch_first=True)
    labels = pad_sequence(
        [example.labels for example in examples], batch_first=True, padding_value=IGNORED
    )
    return Batch(inputs, labels)


def take_step(
    parameters: Sequence[torch.Tensor], loss: torch.Tensor, optimizer: torch.optim.Optimizer
) -> float:
    """Take one optimizer step down a batch's loss, and return that loss."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return loss.item()
