"""Choose the next token of each row: greedily, or from random numbers of its seed and step alone.

The numbers are those of Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1,
2, 3"): a cipher of a counter, so they are computed where the logits are, for all rows at once, and
a row's are the same on every device and beside any others.

argmax(logits / temperature + g) with independent g = -log(-log(u)), u uniform on (0, 1), is a draw
from softmax(logits / temperature): Gumbel 1954; Maddison, Tarlow and Minka 2014, "A* Sampling". The
largest of a block's sums is its log-sum-exp plus one such g. So a block is chosen first, and then a
token in it, with as many numbers as there are blocks and tokens in a block.

Before that come a penalty, min-p, top-k and top-p, in vLLM's order: the penalty on the logits,
min-p at the temperature, then top-k, and last top-p, where the logits are divided by the
temperature.

Every sampled text depends on all this: what changes one is a new `SAMPLER` of entrants.
"""

import hashlib
import math
from collections.abc import Sequence
from itertools import count
from typing import Final, NamedTuple

import torch
from torch.nn.functional import pad

from commands.ports import GenerationTask

_LOW: Final = 0xFFFFFFFF  # 32 bits
_N_ROUNDS: Final = 10
_MULTIPLIERS: Final = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS: Final = 0x9E3779B9, 0xBB67AE85
_LOG2_E: Final = math.log2(math.e)
_LOWEST: Final = -126.0  # exponent of a normal float32; a processor is slow with smaller numbers,
# and noise of at most 23 nats never lets one win


def row_key(seed: int) -> int:
    """Return the key of a seed's random numbers: by SHA-256, so that near seeds have far keys.

    The prefix must never change: every sampled text depends on it.
    """
    mixed = hashlib.sha256(f"tourney.philox:{seed}".encode()).digest()
    return int.from_bytes(mixed[:8], "big", signed=True)


class RowNoise:
    """The random numbers of rows that are decoded together."""

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        """Start at each row's first step."""
        keys = [row_key(seed) for seed in seeds]
        self._keys = torch.tensor(keys, dtype=torch.long, device=device)  # (B,)
        self._steps = count()

    def keep(self, rows: torch.Tensor) -> None:
        """Keep these rows (R,) long, in this order."""
        self._keys = self._keys[rows]

    def step(self, n: int) -> torch.Tensor:
        """Return (B, n) float32 in (0, 1), and move on to the next step."""
        return uniforms(self._keys, torch.full_like(self._keys, next(self._steps)), n)


def uniforms(keys: torch.Tensor, steps: torch.Tensor, n: int) -> torch.Tensor:
    """Return (..., n) float32 in (0, 1), for keys and steps that broadcast to (...) long.

    They are of 32 bits, and near 0 float32 keeps all of them; near 1 it has 24.
    """
    place = torch.arange(-(-n // 4), device=steps.device)
    steps, zero = steps[..., None], torch.zeros_like(place)
    key = keys[..., None] & _LOW, keys[..., None] >> 32 & _LOW
    words = torch.stack(philox((place, steps, zero, zero), key), dim=-1)  # (..., N, 4)
    flat = words.flatten(-2)[..., :n].float()
    return flat.add_(0.5).mul_(2.0**-32).clamp_(max=1 - 2.0**-24)


def philox(
    counter: Sequence[torch.Tensor], key: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the four words that Philox4x32-10 makes of a counter of four and a key of two.

    All are long tensors of 32 bits, of shapes that broadcast. Products of 64 bits wrap around in
    them, which leaves their bits as they should be.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_N_ROUNDS):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (second >> 32 ^ c1 ^ k0) & _LOW, (first >> 32 ^ c3 ^ k1) & _LOW
        c1, c3 = second, first  # their upper halves are cut off above, and below
        k0, k1 = k0 + _KEY_STEPS[0] & _LOW, k1 + _KEY_STEPS[1] & _LOW
    return c0, c1 & _LOW, c2, c3 & _LOW


class ChosenTokens(NamedTuple):
    """The next token of each row."""

    tokens: torch.Tensor  # (B,) long; meaningless where the logits are not finite
    is_finite: torch.Tensor  # (B,) bool, False for a NaN, an infinity, or no possible token


def likeliest(logits: torch.Tensor) -> ChosenTokens:
    """Return the tokens with the highest of (B, V) logits; single ones may be minus infinity."""
    top, tokens = logits.max(dim=-1)  # hands a NaN on
    return ChosenTokens(tokens, top.isfinite())


def n_draws(n_tokens: int) -> int:
    """Return how many random numbers it takes to draw from a vocabulary of that size."""
    return _n_blocks(n_tokens) + _block_size(n_tokens)


def sample(logits: torch.Tensor, uniform: torch.Tensor, temperature: float = 1.0) -> ChosenTokens:
    """Draw a token of each row from softmax(logits / temperature).

    Args:
        logits: (B, V) float; single ones may be minus infinity.
        uniform: (B, n_draws(V)) in (0, 1).
        temperature: Above 0.
    """
    n_rows, n_tokens = logits.shape
    n_blocks, size = _n_blocks(n_tokens), _block_size(n_tokens)
    noise = -(-torch.log1p(-uniform)).log()  # of 1 - u: the noise is large where u is precise
    for_block, for_place = torch.split(noise, [n_blocks, size], dim=-1)
    top = logits.amax(dim=-1, keepdim=True).float()  # (B, 1)
    exponents = (logits - top).mul_(_LOG2_E / temperature)  # of 2: faster than exp
    p = torch.threshold_(exponents, _LOWEST, -math.inf).exp2_()  # (B, V)
    blocks = pad(p, (0, n_blocks * size - n_tokens)).view(n_rows, n_blocks, size)
    block = (blocks.sum(-1).log_() + for_block).argmax(-1)  # (B,)
    within = blocks[torch.arange(n_rows, device=p.device), block]  # (B, size)
    place = (within.log_() + for_place).argmax(-1)
    tokens = (block * size + place).clamp(max=n_tokens - 1)  # beyond it where there is a NaN
    return ChosenTokens(tokens, top[:, 0].isfinite())


def _block_size(n_tokens: int) -> int:
    """Return about the root of a vocabulary's size, so that the fewest numbers are needed."""
    return 1 << round(math.log2(n_tokens) / 2)


def _n_blocks(n_tokens: int) -> int:
    return -(-n_tokens // _block_size(n_tokens))


def nucleus(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Set all scores to -inf but those of the likeliest tokens with total probability top_p.

    Of equally likely tokens, the one with the lower id comes first.

    Args:
        scores: (..., V) float, logits or log-probabilities at the temperature that is drawn at.
        top_p: Above 0; at 1 the scores are returned as they are.
    """
    if top_p >= 1:
        return scores
    ordered, tokens = scores.sort(dim=-1, descending=True, stable=True)
    p = ordered.float().softmax(-1)  # (..., V)
    likelier = p.cumsum(-1).roll(1, dims=-1)  # (..., V) of all tokens before this one together
    likelier[..., 0] = 0
    ruled_out = torch.zeros_like(tokens, dtype=torch.bool).scatter(-1, tokens, likelier >= top_p)
    return scores.masked_fill(ruled_out, -math.inf)


NO_TOKEN: Final = -1
BROKEN: Final = -2  # in the place of a token whose logits were not finite


class SamplingSettings(NamedTuple):
    """How the next token is chosen from its logits."""

    temperature: float | None = None  # None: greedy
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    top_p: float = 1.0


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
    logits = warp(logits.float(), history, how)
    if how.temperature is None:
        return likeliest(logits)
    uniform = noise.step(n_draws(logits.shape[-1]))
    if how.top_p >= 1:
        return sample(logits, uniform, how.temperature)
    return sample(nucleus(logits / how.temperature, how.top_p), uniform)
