"""Choose the next token of each row: greedily or sampled, after a penalty, min-p, top-k and top-p.

The order is vLLM's: the penalty on the logits, min-p at the temperature, then top-k, and last
top-p, which is applied where the logits are divided by the temperature.
"""

import math
from typing import Final, NamedTuple

import torch

from commands.backends.weights.sampling import (
    ChosenTokens,
    RowNoise,
    likeliest,
    n_draws,
    nucleus,
    sample,
)
from commands.ports import GenerationTask

NO_TOKEN: Final = -1
BROKEN: Final = -2  # in the place of a token whose logits were not finite


class SamplingSettings(NamedTuple):
    """How the next token is chosen from its logits."""

    temperature: float | None = None  # None: greedy
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    top_p: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether the logits are as they come, but for temperature and top-p."""
        return self.repetition_penalty == 1 and self.min_p == 0 and self.top_k is None


def sampling_settings(task: GenerationTask) -> SamplingSettings:
    """Return a task's settings, without those that leave its choice as it is."""
    chosen, temperature = task.options, task.entrant.temperature
    if temperature is None:
        return SamplingSettings(repetition_penalty=chosen.repetition_penalty)
    return SamplingSettings(
        temperature, chosen.top_k, chosen.min_p, chosen.repetition_penalty, chosen.top_p
    )


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
    size = (*logits.shape[:-1], logits.shape[-1] + 1)
    none = torch.zeros(size, dtype=torch.bool, device=logits.device)
    seen = none.scatter(-1, history + 1, value=True)[..., 1:]  # (B, V)
    changed = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, changed, logits)


def choose(
    logits: torch.Tensor, history: torch.Tensor, how: SamplingSettings, noise: RowNoise
) -> ChosenTokens:
    """Choose the next token of each row.

    Args:
        logits: (B, V) float.
        history: (B, T) long, as in `warp`.
        how: The settings of all rows.
        noise: Of the rows, which is at this step.
    """
    if not how.is_plain:
        logits = warp(logits.float(), history, how)
    if how.temperature is None:
        return likeliest(logits)
    uniform = noise.step(n_draws(logits.shape[-1]))
    if how.top_p >= 1:
        return sample(logits, uniform, how.temperature)
    return sample(nucleus(logits.float() / how.temperature, how.top_p), uniform)
