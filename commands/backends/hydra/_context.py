"""Caches of a Hydra's trunk and heads while rows are decoded together, and which columns count."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from commands.backends.hydra._net import BlockInputs, EveryHead, HydraNet, Route, Routing
from commands.backends.weights.batching import pad_left


class HeadRoles(NamedTuple):
    """The heads' roles for one row: one drafts, and all others that answer verify."""

    draft: int
    jury: tuple[int, ...]  # empty if one head decides alone; in all rows of a context, or in none


class HydraContext:
    """Rows that are decoded together, a token each at a time.

    They share the columns of their caches. Padding is masked, and positions count a row's own
    columns only, so each row sees what it would see alone.
    """

    def __init__(self, net: HydraNet, roles: Sequence[HeadRoles]) -> None:
        """Start with empty caches, and roles[r] for row r."""
        self._net, self._device = net, net.device
        self.trunk, self.heads = DynamicCache(), DynamicCache()
        self.is_own = torch.ones(len(roles), 0, dtype=torch.bool, device=self._device)  # (B, K)
        self._assign(roles)

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> None:
        """Run trunk and heads on one prompt per row; prompts may be empty."""
        if not any(prompts):
            return
        ids, positions, mask, self.is_own = pad_prompts(prompts, self._device)
        place = BlockInputs(positions, mask[:, None], self.trunk)
        states = self._net.trunk_states(ids, place)
        self._net.read(states, self._route, place._replace(cache=self.heads))

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Run one token (B,) per row; return the states of all heads (E, B, D).

        Where one head decides alone, E is 1.
        """
        positions = self.is_own.sum(dim=1, keepdim=True)
        self.is_own = pad(self.is_own, (0, 1), value=True)
        place = BlockInputs(positions, self.is_own[:, None, None], self.trunk)
        states = self._net.trunk_states(tokens[:, None], place)
        by_heads = place._replace(cache=self.heads)
        of_heads = self._net.head_states(states, self._route, by_heads)  # (E * B, 1, D)
        return of_heads.view(self.n_heads, len(tokens), -1)

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Drop all rows but these."""
        chosen = torch.tensor(rows, device=self._device)
        heads = torch.arange(self.n_heads, device=self._device)[:, None]
        by_head = (heads * len(self.roles) + chosen).flatten()  # (E * rows,)
        self.trunk.batch_select_indices(chosen)
        for n, layer in enumerate(self.heads.layers):
            cast("DynamicLayer", layer).batch_select_indices(by_head if n else chosen)
        self.is_own = self.is_own[chosen]
        self._assign([self.roles[row] for row in rows])

    def _assign(self, roles: Sequence[HeadRoles]) -> None:
        self.roles = list(roles)
        self.n_heads = 1 + len(roles[0].jury)
        drafting = [role.draft for role in roles]
        self.drafting = torch.tensor(drafting, device=self._device)  # (B,)
        jury = [role.jury for role in roles]
        self.jury = torch.tensor(jury, dtype=torch.long, device=self._device).T  # (E - 1, B)
        has_jury = self.n_heads > 1
        self._route: Routing = (
            EveryHead(self.n_heads) if has_jury else Route(drafting, self._device)
        )


class PaddedPrompts(NamedTuple):
    """Prompts padded on the left, with positions and masks."""

    ids: torch.Tensor  # (B, S) long
    positions: torch.Tensor  # (B, S) long
    mask: torch.Tensor  # (B, S, S) bool; padding sees itself, to avoid NaN
    is_own: torch.Tensor  # (B, S) bool, false on padding


def pad_prompts(prompts: Sequence[Sequence[int]], device: torch.device) -> PaddedPrompts:
    """Pad prompts, of which at least one is not empty."""
    ids, is_real = (each.to(device) for each in pad_left(prompts))
    is_own = is_real.bool()
    columns = causal_mask(ids.shape[1], device)
    mask = columns & is_own[:, None, :] | torch.eye(len(columns), dtype=torch.bool, device=device)
    return PaddedPrompts(ids, (is_real.cumsum(dim=1) - 1).clamp(min=0), mask, is_own)


def causal_mask(n_columns: int, device: torch.device) -> torch.Tensor:
    """Return (S, S) bool, true on and below the diagonal."""
    return torch.ones(n_columns, n_columns, dtype=torch.bool, device=device).tril()
