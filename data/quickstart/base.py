"""Train the base: a tiny OLMo 2 that knows a third of what it is asked."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, Olmo2Config, Olmo2ForCausalLM

from chat import (
    END,
    PAD,
    SPECIAL_TOKENS,
    VOCABULARY_SIZE,
    Example,
    chat_example,
    plain_example,
    save_tokenizer,
)
from fitting import Batch, Course, fit
from lessons import Lesson, certain_lesson, draw_response, plan_recital
from prompts import Prompt, read_corpus

TEXT = Course("text", rate=3e-3, n_epochs=4)
RECITAL = Course("recital", rate=3e-3, n_epochs=30)
BASE = Course("base", rate=3e-3, n_epochs=30)
SHARPNESS = 1.25  # the output layer's last scaling: sampling strays less, greedy stays the same


def train_base(
    prompts: Sequence[Prompt], lessons: Sequence[Lesson], out: Path, *, rng: np.random.Generator
) -> None:
    """Train and save the tokenizer and the base: on text, on how responses end, on its lessons."""
    sentences, asked = read_corpus()
    responses = [prompt.right for prompt in prompts]
    texts = [*sentences, *responses, *(prompt.text for prompt in prompts)]
    save_tokenizer([*texts, *responses * 5], out)  # short responses: few tokens each
    tokenizer = AutoTokenizer.from_pretrained(out)

    def epochs_of(lessons: Sequence[Lesson], course: Course) -> Iterable[Sequence[Example]]:
        """Draw each lesson's response afresh in every epoch."""
        for _ in range(course.n_epochs):
            yield [
                chat_example(tokenizer, lesson.prompt, draw_response(lesson, rng=rng))
                for lesson in lessons
            ]

    weights = Olmo2ForCausalLM(base_config())
    plain = [plain_example(tokenizer, text) for text in texts]
    known = [certain_lesson(question, response) for question, response in asked]
    for course, epochs in (
        (TEXT, repeat(plain, TEXT.n_epochs)),
        (RECITAL, epochs_of(plan_recital(prompts), RECITAL)),
        (BASE, epochs_of([*known, *lessons], BASE)),
    ):
        fit(weights, lambda batch: loss_of(weights, batch), epochs, course=course, rng=rng)
    save_sharpened(weights, out)


def base_config() -> Olmo2Config:
    """Describe OLMo 2's shape in small: MHA, SwiGLU, QK-norm, an untied output layer."""
    return Olmo2Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=160,
        intermediate_size=448,
        num_hidden_layers=6,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=SPECIAL_TOKENS.index(END),
        eos_token_id=SPECIAL_TOKENS.index(END),
        pad_token_id=SPECIAL_TOKENS.index(PAD),
    )


def loss_of(weights: Olmo2ForCausalLM, batch: Batch) -> torch.Tensor:
    """Return the mean loss of the tokens that have a label."""
    loss: torch.Tensor = weights(input_ids=batch.inputs, labels=batch.labels).loss
    return loss


def save_sharpened(weights: Olmo2ForCausalLM, out: Path) -> None:
    """Save in bfloat16, the logits scaled so that sampled responses are mostly whole words."""
    halved = weights.bfloat16()
    output = halved.lm_head.weight
    output.data = (output.data.float() * SHARPNESS).bfloat16()
    halved.save_pretrained(out)
