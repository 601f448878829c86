"""Broken logits are seen, in the row and at the step where they break."""

import math

import pytest
import torch

from commands.backends.weights.sampling import NEVER, FiniteWatch, StopBrokenRows

NO_TOKENS = torch.empty(0, 0)
SOUND = [0.5, -1.0, 2.0]


def watched(*steps: list[list[float]]) -> FiniteWatch:
    """Let a new watch see the logits of some steps."""
    watch = FiniteWatch(len(steps[0]), torch.device("cpu"))
    for rows in steps:
        watch(NO_TOKENS, torch.tensor(rows))
    return watch


@pytest.mark.parametrize(
    "broken", [[0.0, math.nan, 1.0], [0.0, math.inf, 1.0], [-math.inf, -math.inf, -math.inf]]
)
def test_only_the_broken_row_is_noted(broken: list[float]) -> None:
    """One prompt that overflows must not take its batch with it."""
    watch = watched([SOUND, broken])

    assert watch.broken_at.tolist() == [NEVER, 0]


def test_single_tokens_may_be_ruled_out() -> None:
    """Minus infinity on a few tokens is how some models mask unused ones."""
    watch = watched([[-math.inf, 1.0, 2.0]])

    assert watch.broken_at.tolist() == [NEVER]


def test_the_first_broken_step_is_kept() -> None:
    """What a row does after its end token does not count, so the step matters."""
    watch = watched([SOUND], [[math.nan, 0.0, 0.0]], [SOUND], [[math.nan, 0.0, 0.0]])

    assert watch.broken_at.tolist() == [1]


def test_broken_rows_end_and_sound_rows_go_on() -> None:
    """In float16 whole banks can overflow; generating them to the end would cost hours."""
    watch = watched([[math.nan, 0.0, 0.0], SOUND])

    assert StopBrokenRows(watch)(NO_TOKENS, None).tolist() == [True, False]
