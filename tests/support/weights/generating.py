"""Prompts of very different lengths, and what a generator answers to them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commands.backends.huggingface.local import Load, LocalModels
from commands.ports import GeneratedText, GenerationFailure, GenerationTask
from tests.support.weights.loads import kept

PROMPTS: Final = ["dose " * (1 + 5 * n % 16) + "?" for n in range(8)]
WIDEST: Final = 110  # tokens: none of them is wider with its new tokens
ENOUGH: Final = len(PROMPTS) * WIDEST  # for all tasks of a test at once


def results(
    owed: Sequence[GenerationTask], batch_tokens: int = ENOUGH, load: Load = kept
) -> list[GeneratedText | GenerationFailure]:
    """Return what a new generator makes of tasks, in their order, without the times."""
    generator = LocalModels(batch_tokens, device="cpu", load=load)
    finished = [result for batch in generator.generate(owed) for result in batch]
    assert sorted(r.response_key for r in finished) == sorted(t.response_key for t in owed)
    by_key = {
        r.response_key: replace(r, elapsed_s=0.0) if isinstance(r, GeneratedText) else r
        for r in finished
    }
    return [by_key[task.response_key] for task in owed]


def answers(
    owed: Sequence[GenerationTask], batch_tokens: int = ENOUGH, load: Load = kept
) -> list[GeneratedText]:
    """Return them where every task is answered."""
    made = results(owed, batch_tokens, load)
    answered = [result for result in made if isinstance(result, GeneratedText)]
    assert answered == made
    return answered


def texts(
    owed: Sequence[GenerationTask], batch_tokens: int = ENOUGH, load: Load = kept
) -> list[str]:
    """Return what is said where every task is answered."""
    return [answer.text for answer in answers(owed, batch_tokens, load)]
