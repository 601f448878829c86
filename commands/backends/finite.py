"""A watch on logits: a row whose logits are no numbers fails; it never becomes garbage text."""

from typing import cast

import torch
from transformers import LogitsProcessor, StoppingCriteria

NEVER = torch.iinfo(torch.long).max


class FiniteWatch(LogitsProcessor):
    """Note for each row the first step whose logits hold a NaN, an infinity, or no maximum.

    Single logits of minus infinity are let pass: some models rule tokens out that way.
    """

    def __init__(self, n_rows: int, device: torch.device) -> None:
        """Watch n_rows rows, from step 0."""
        self.broken_at = torch.full((n_rows,), NEVER, device=device)  # (B,)
        self._step = 0

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores as they are: (B, V) float, the logits of the next token."""
        is_sound = scores.amax(dim=-1).isfinite()  # (B,); amax hands a NaN on
        step = torch.where(is_sound, NEVER, self._step)
        self.broken_at = torch.minimum(self.broken_at, step)
        self._step += 1
        return scores


class StopBrokenRows(StoppingCriteria):
    """End a row once its logits are broken; the rest of its tokens would be waste."""

    def __init__(self, watch: FiniteWatch) -> None:
        """Ask this watch."""
        self._watch = watch

    def __call__(self, _: torch.Tensor, __: object, **___: object) -> torch.BoolTensor:
        """Return (B,) bool, true for the rows to end."""
        return cast("torch.BoolTensor", self._watch.broken_at < NEVER)
