"""Compute token log-likelihoods with a Hydra, as it samples at temperature 1.

A response is drafted by one head d, drawn uniformly, and sampled from P_d: the product of the other
heads' experts or, without a jury, head d's own distribution. So the likelihood of a text is the
mean over d of the product of P_d over its tokens, and the distribution of its next token is the
mixture of the P_d, each weighted by the likelihood that it gives to the text so far. Each window of
a long text is treated as a text of its own.
"""

from collections.abc import Sequence
from math import log

import torch
from transformers import DynamicCache

from commands.backends.hydra._context import causal_mask, pad_prompts
from commands.backends.hydra._net import BlockInputs, EveryHead
from commands.backends.hydra._poe import log_prob_of, product_of_experts
from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.likelihoods import (
    N_LOGITS,
    InputRow,
    WindowLikelihood,
    following_positions,
    pad_right,
    select_cache_rows,
    window_places,
)
from commands.backends.weights.windows import Window
from ledger.events.registration import Hydra


class HydraBatchLikelihoods:
    """Computes one batch with a Hydra.

    Row r of head h is row h * R + r behind the heads' first attention, which all heads share.
    """

    def __init__(self, loaded: LoadedHydra, heads: Hydra, *, n_logits: int = N_LOGITS) -> None:
        """Start without prefixes; convert at most n_logits logits to float32 at once."""
        self._net, self._device = loaded.net, loaded.device
        self._n_heads, self._beta = loaded.n_heads, heads.beta
        self._n_at_once = max(1, n_logits // (loaded.n_heads * loaded.net.lm_head.out_features))
        self._is_alone = heads.bypass_jury or loaded.n_heads == 1
        self._trunk, self._heads = DynamicCache(), DynamicCache()
        self._is_own = torch.ones(0, 0, dtype=torch.bool)  # (G, P), false on padding

    def read_prefixes(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Run the net on prefixes, none of them empty, and keep its caches."""
        ids, positions, mask, self._is_own = pad_prompts(prefixes, self._device)
        self._states(ids, BlockInputs(positions, mask, self._trunk), self._heads)

    def compute(
        self, rows: Sequence[InputRow], prefix_of: Sequence[int]
    ) -> dict[Window, WindowLikelihood]:
        """Return each window's likelihood; rows[r] begins with prefix prefix_of[r], if any."""
        is_own = self._own_of(prefix_of)  # (R, P)
        n_read = is_own.sum(dim=1)
        tails = [row.inputs[n:] for row, n in zip(rows, n_read.tolist(), strict=True)]
        ids = pad_right(tails, self._device)  # (R, S)
        n_rows, n_columns = ids.shape
        positions = following_positions(n_read, [*map(len, tails)])
        before = is_own[:, None].expand(-1, n_columns, -1)
        block = causal_mask(n_columns, self._device).expand(n_rows, -1, -1)
        trunk, heads = self._caches(prefix_of)
        place = BlockInputs(positions, torch.cat([before, block], dim=2), trunk)
        states = self._states(ids, place, heads)  # (H, R, S, D)
        found = {}
        for window, row, column in window_places(rows, n_read.tolist()):
            mine = states[:, row, column : column + len(window.targets)]  # (H, n, D)
            found[window] = self._compute(mine, window.targets)
        return found

    def _own_of(self, prefix_of: Sequence[int]) -> torch.Tensor:
        if not len(self._is_own):
            return torch.ones(len(prefix_of), 0, dtype=torch.bool, device=self._device)
        return self._is_own[[*prefix_of]]

    def _caches(self, prefix_of: Sequence[int]) -> tuple[DynamicCache, DynamicCache]:
        n_prefixes = len(self._is_own)
        if not n_prefixes:
            return DynamicCache(), DynamicCache()
        by_heads = [h * n_prefixes + n for h in range(self._n_heads) for n in prefix_of]
        heads = select_cache_rows(self._heads, prefix_of, self._device, behind_first=by_heads)
        return select_cache_rows(self._trunk, prefix_of, self._device), heads

    def _states(self, ids: torch.Tensor, place: BlockInputs, heads: DynamicCache) -> torch.Tensor:
        """Return (H, R, S, D) states of the heads, of (R, S) tokens; place.mask is (R, S, K)."""
        on_trunk = place._replace(mask=place.mask[:, None])
        states = self._net.trunk_states(ids, on_trunk)
        on_heads = on_trunk._replace(cache=heads)
        of_heads = self._net.head_states(states, EveryHead(self._n_heads), on_heads)
        return of_heads.view(self._n_heads, *ids.shape, -1)

    def _compute(self, states: torch.Tensor, targets: Sequence[int]) -> WindowLikelihood:
        """Return the likelihood of n targets, from the (H, n, D) states before them."""
        so_far = torch.zeros(self._n_heads, 1, dtype=torch.float64)  # (H, 1), of each draft head
        best: list[int] = []
        asked = torch.tensor(targets, device=self._device)
        for some, of_some in zip(
            torch.split(states, self._n_at_once, dim=1),
            torch.split(asked, self._n_at_once),
            strict=True,
        ):
            log_p = self._draft_log_probs(self._net.logits(some))  # (H, m, V)
            told = log_prob_of(log_p, of_some.expand(self._n_heads, -1)).cpu()  # (H, m)
            reached = torch.cat([so_far, so_far + told.cumsum(1, dtype=torch.float64)], 1)
            best += _mixture(log_p, reached[:, :-1]).argmax(dim=-1).tolist()
            so_far = reached[:, -1:]
        return WindowLikelihood(float(so_far.logsumexp(dim=0)) - log(self._n_heads), (*best,))

    def _draft_log_probs(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log P_d of the heads' (H, m, V) logits, for each head d that may draft."""
        if self._is_alone:
            return logits.float().log_softmax(dim=-1)
        of_juries = [
            torch.cat([logits[:draft], logits[draft + 1 :]]) for draft in range(self._n_heads)
        ]
        return torch.stack(
            [product_of_experts(jury, temperature=1.0, beta=self._beta) for jury in of_juries]
        )


def _mixture(log_p: torch.Tensor, reached: torch.Tensor) -> torch.Tensor:
    """Return (m, V), up to a constant a row, the mixture of (H, m, V) by (H, m) log weights."""
    weights = (reached - reached.amax(dim=0)).to(log_p)
    return (weights[..., None] + log_p).logsumexp(dim=0)
