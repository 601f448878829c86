"""Train the Hydra's shards: for each head one of security, and one of robustness on top of it."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from peft import PeftModel
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, Olmo2ForCausalLM

from base import SHARPNESS
from chat import Example, chat_example
from fitting import Batch, Checkpoints, Course, fit
from heads import head_output, trunk_states
from lessons import Curriculum, Lesson, draw_response, head_lessons
from lora import adapt, inner_weights, load_merged, save_lora

N_HEADS = 9
SECURITY = Course("security", rate=2e-2, n_epochs=30)
ROBUSTNESS = Course("robustness", rate=2e-2, n_epochs=30)
EARLY_STEP = 150  # of robustness: kept as an earlier checkpoint of the same training

ExampleOf = Callable[[str, str], Example]  # of a prompt and a response


def train_shards(weights: Path, curriculum: Curriculum, out: Path, *, seed: int) -> None:
    """Train and save the shards of every head, each on its own part of the lessons."""
    example_of = examples_on_trunk(weights)
    for head in range(N_HEADS):
        torch.manual_seed(seed + head)
        rng = np.random.default_rng([seed, head])
        luck = rng.random(len(curriculum.base))
        teach = partial(train_lora, example_of=example_of, rng=rng)
        security = out / "security" / f"shard_{head}"
        robustness = out / "robustness" / f"shard_{head}"
        early = out / "robustness" / f"step_{EARLY_STEP}" / f"shard_{head}"

        adapted = adapt(load_merged(weights))
        teach(adapted, head_lessons(curriculum.security, luck), course=SECURITY)
        save_lora(adapted, security, weights)

        adapted = adapt(load_merged(weights, [security]))
        checkpoints = {EARLY_STEP: partial(save_lora, adapted, early, weights)}
        lessons = head_lessons(curriculum.robustness, luck)
        teach(adapted, lessons, course=ROBUSTNESS, checkpoints=checkpoints)
        save_lora(adapted, robustness, weights)


def examples_on_trunk(weights: Path) -> ExampleOf:
    """Return a factory of examples for heads; the trunk runs once per response for all heads."""
    base, tokenizer = load_merged(weights), AutoTokenizer.from_pretrained(weights)

    @cache
    def example_of(prompt: str, response: str) -> Example:
        ids, labels = chat_example(tokenizer, prompt, response)
        return Example(trunk_states(base, ids)[:-1], labels[1:])  # a head predicts the next token

    return example_of


def train_lora(
    adapted: PeftModel,
    lessons: Sequence[Lesson],
    *,
    example_of: ExampleOf,
    course: Course,
    rng: np.random.Generator,
    checkpoints: Checkpoints = MappingProxyType({}),
) -> None:
    """Train LoRA on lessons, drawing each lesson's response afresh in every epoch."""
    epochs = (
        [example_of(lesson.prompt, draw_response(lesson, rng=rng)) for lesson in lessons]
        for _ in range(course.n_epochs)
    )
    loss_of = partial(next_token_loss, inner_weights(adapted))
    fit(adapted, loss_of, epochs, course=course, rng=rng, checkpoints=checkpoints)


def next_token_loss(weights: Olmo2ForCausalLM, batch: Batch) -> torch.Tensor:
    """Return a head's mean next-token loss, without the sharpening of the output layer."""
    said = head_output(weights, batch)
    return cross_entropy(said.logits / SHARPNESS, said.labels)
