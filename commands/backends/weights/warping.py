"""Warp the logits of the next token before it is chosen: penalty, top-k and min-p.

The order is vLLM's: the penalty on the logits, min-p at the temperature, then top-k, and last
top-p, which is applied where the logits are divided by the temperature.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from transformers import LogitsProcessor

from commands.ports import GenerationTask

NO_TOKEN: Final = -1


class SamplingSettings(NamedTuple):
    """How the next token is chosen from its logits."""

    temperature: float | None = None  # None: greedy
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0


def sampling_settings(task: GenerationTask) -> SamplingSettings:
    """Return a task's settings, without those that leave its choice as it is."""
    chosen, temperature = task.options, task.entrant.temperature
    if temperature is None:
        return SamplingSettings(repetition_penalty=chosen.repetition_penalty)
    return SamplingSettings(temperature, chosen.top_k, chosen.min_p, chosen.repetition_penalty)


def warp(logits: torch.Tensor, history: torch.Tensor, how: SamplingSettings) -> torch.Tensor:
    """Return the logits that tokens are chosen from, before division by the temperature.

    Args:
        logits: (B, V) float, of the next token.
        history: (B, T) long, the tokens of prompt and answer; NO_TOKEN where there is none.
        how: The settings of all rows.
    """
    if how.repetition_penalty != 1:
        logits = penalised(logits, history, how.repetition_penalty)
    if how.min_p > 0:
        # p >= min_p * p_max, with p from softmax(logits / temperature)
        reach = -math.log(how.min_p) * (how.temperature or 1.0)
        lowest = logits.amax(dim=-1, keepdim=True) - reach
        logits = logits.masked_fill(logits < lowest, -math.inf)
    if how.top_k is not None and how.top_k < logits.shape[-1]:
        lowest = logits.topk(how.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < lowest, -math.inf)
    return logits


def penalised(logits: torch.Tensor, history: torch.Tensor, penalty: float) -> torch.Tensor:
    """Divide the positive logits of earlier tokens by a penalty, and multiply the negative ones.

    As in Keskar et al. 2019, CTRL, section 4.1, and in transformers, whose own processor would take
    the padding of a batch for tokens of the prompt.

    Args:
        logits: (B, V) float.
        history: (B, T) long, as in `warp`.
        penalty: Above 1, earlier tokens become less likely.
    """
    seen = torch.zeros(*logits.shape[:-1], logits.shape[-1] + 1, dtype=torch.bool)
    seen = seen.to(logits.device).scatter(-1, history + 1, value=True)[..., 1:]  # (B, V)
    changed = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, changed, logits)


class Warper(LogitsProcessor):
    """Warps the logits of a batch whose prompts are padded on the left."""

    def __init__(self, how: SamplingSettings, n_prompt_tokens: Sequence[int]) -> None:
        """Take the settings of all rows, and the length of each row's prompt."""
        self._how = how
        longest = max(n_prompt_tokens)
        self._n_padding = torch.tensor([[longest - n] for n in n_prompt_tokens])  # (B, 1)

    def __call__(self, whole: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return warped (B, V) logits for (B, T) tokens, padding included."""
        places = torch.arange(whole.shape[1], device=whole.device)  # (T,)
        is_padding = places < self._n_padding.to(whole.device)  # (B, T)
        return warp(scores, whole.masked_fill(is_padding, NO_TOKEN), self._how)


def warping_processors(
    task: GenerationTask, n_prompt_tokens: Sequence[int]
) -> list[LogitsProcessor]:
    """Return what warps the logits of a batch like this task; nothing where nothing is set."""
    how = sampling_settings(task)
    is_plain = how == SamplingSettings(how.temperature)
    return [] if is_plain else [Warper(how, n_prompt_tokens)]
