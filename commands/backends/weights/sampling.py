"""Choose the next token of each row, from random numbers that depend on its seed and step alone.

The numbers are those of Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1,
2, 3"): a cipher of a counter, so they are computed where the logits are, for all rows at once, and
a row's are the same on every device and beside any others.

argmax(logits / temperature + g) with independent g = -log(-log(u)), u uniform on (0, 1), is a draw
from softmax(logits / temperature): Gumbel 1954; Maddison, Tarlow and Minka 2014, "A* Sampling". The
largest of a block's sums is its log-sum-exp plus one such g. So a block is chosen first, and then a
token in it, with as many numbers as there are blocks and tokens in a block.

Every sampled text depends on all this: what changes one is a new `SAMPLER` of entrants.
"""

import hashlib
import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import torch

_LOW: Final = 0xFFFFFFFF  # 32 bits
_N_ROUNDS: Final = 10
_MULTIPLIERS: Final = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS: Final = 0x9E3779B9, 0xBB67AE85
_N_AHEAD: Final = 8  # steps whose numbers are computed at once: there are many small operations
_IN_CACHE: Final = 2**18  # logits, in float32: a processor's cache holds them twice
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
    """The random numbers of rows that are decoded together, for some steps ahead."""

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        """Start at each row's first step."""
        keys = [row_key(seed) for seed in seeds]
        self._keys = torch.tensor(keys, dtype=torch.long, device=device)  # (B,)
        self._n_made = 0  # steps whose numbers were computed
        self._ahead: deque[torch.Tensor] = deque()  # (B, n) of the next steps

    def keep(self, rows: torch.Tensor) -> None:
        """Keep these rows (R,) long, in this order."""
        self._keys = self._keys[rows]
        self._ahead = deque(each[rows] for each in self._ahead)

    def step(self, n: int) -> torch.Tensor:
        """Return (B, n) float32 in (0, 1), and move on to the next step.

        All steps must ask for the same number.
        """
        if not self._ahead:
            steps = torch.arange(self._n_made, self._n_made + _N_AHEAD, device=self._keys.device)
            self._ahead.extend(uniforms(self._keys[:, None], steps[None], n).unbind(1))
            self._n_made += _N_AHEAD
        return self._ahead.popleft()


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
    n_tokens = logits.shape[-1]
    n_blocks, size = _n_blocks(n_tokens), _block_size(n_tokens)
    noise = -(-torch.log1p(-uniform)).log()  # of 1 - u: the noise is large where u is precise
    for_block, for_place = torch.split(noise, [n_blocks, size], dim=-1)
    n_rows = _n_at_once(logits)
    p = noise.new_empty(n_rows, n_blocks * size)  # one place for all: a new one costs more
    p[:, n_tokens:] = 0  # so that the last block is a whole one
    parts = zip(torch.split(logits, n_rows), torch.split(for_block, n_rows), strict=True)
    drawn = [_draw_block(*part, temperature, p) for part in parts]
    top, block, within = map(torch.cat, zip(*drawn, strict=True))  # (B,), (B,), (B, size)
    place = (within.log_() + for_place).argmax(-1)
    tokens = (block * size + place).clamp(max=n_tokens - 1)  # beyond it where there is a NaN
    return ChosenTokens(tokens, top.isfinite())


def _draw_block(
    logits: torch.Tensor, noise: torch.Tensor, temperature: float, p: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return each row's top logit, the block of its token, and how likely that block's tokens are.

    Args:
        logits: (R, V).
        noise: (R, blocks) Gumbel.
        temperature: As in `sample`.
        p: At least (R, blocks * size), to work in; 0 beyond V.
    """
    n_rows, n_tokens = logits.shape
    p = p[:n_rows]
    top = logits.amax(dim=-1, keepdim=True).float()  # (R, 1)
    torch.sub(logits, top, out=p[:, :n_tokens])
    exponents = p[:, :n_tokens].mul_(_LOG2_E / temperature)  # of 2: faster than exp
    torch.threshold_(exponents, _LOWEST, -math.inf).exp2_()
    p = p.view(*noise.shape, -1)
    block = (p.sum(-1).log_() + noise).argmax(-1)  # (R,)
    return top[:, 0], block, p[torch.arange(n_rows, device=p.device), block]


def _n_at_once(logits: torch.Tensor) -> int:
    """Return how many rows to draw at a time: a processor's cache is faster than its memory."""
    if logits.device.type != "cpu":
        return len(logits)
    return min(max(1, _IN_CACHE // logits.shape[-1]), len(logits))


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
