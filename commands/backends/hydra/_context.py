"""Caches of a Hydra's trunk and heads while rows are decoded together, and which columns count."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from transformers import DynamicCache

from commands.backends.hydra._net import BlockInputs, HydraNet, Route
from commands.backends.weights.batching import pad_left


class HeadRoles(NamedTuple):
    """The heads' roles for one row: one drafts, the others verify."""

    draft: int
    jury: tuple[int, ...]  # equally many in all rows of a context; empty if one head decides alone


class HydraContext:
    """Rows that are decoded together, in blocks of drafted tokens of which some are accepted.

    The rows share the columns of their caches. Columns that are not a row's own, such as padding
    or rejected drafts, are masked for that row, and positions count its own columns only, so each
    row sees what it would see alone.

    Juror e of row r stands at row e * B + r of the jury's batch.
    """

    def __init__(self, net: HydraNet, roles: Sequence[HeadRoles]) -> None:
        """Start with empty caches, and roles[r] for row r."""
        self._net, self._device = net, net.device
        self._trunk, self._draft, self._jury = DynamicCache(), DynamicCache(), DynamicCache()
        self._is_own = torch.ones(len(roles), 0, dtype=torch.bool, device=self._device)  # (B, K)
        self._assign(roles)

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> None:
        """Run trunk and heads on one prompt per row; prompts may be empty."""
        if not any(prompts):
            return
        ids, positions, mask, self._is_own = pad_prompts(prompts, self._device)
        states = self._net.trunk_states(ids, BlockInputs(positions, mask[:, None], self._trunk))
        self._draft_states(states, positions, mask)
        if self._n_jurors:
            self._jury_states(states, positions, mask)

    def draft(self, tokens: torch.Tensor, n_drafted: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Run one token per row after n_drafted others: (B, D) of the trunk, and of draft heads."""
        positions = self._n_own()[:, None] + n_drafted  # (B, 1)
        mask = self._block_mask(n_drafted + 1)[:, -1:]  # (B, 1, K)
        place = BlockInputs(positions, mask[:, None], self._trunk)
        states = self._net.trunk_states(tokens[:, None], place)
        return states[:, 0], self._draft_states(states, positions, mask)[:, 0]

    def verify(self, states: torch.Tensor) -> torch.Tensor:
        """Run the juries on a drafted block: trunk (B, S, D) to each row's jurors (E, B, S, D)."""
        n_drafted = states.shape[1]
        positions = self._n_own()[:, None] + torch.arange(n_drafted, device=self._device)
        return self._jury_states(states, positions, self._block_mask(n_drafted))

    def keep_accepted(self, n_kept: torch.Tensor, n_drafted: int) -> None:
        """Keep each row's first n_kept (B,) drafted columns, and discard the others."""
        n_columns = int(n_kept.max())
        if n_columns < n_drafted:  # older transformers empty a cache when cropping by 0
            for cache in (self._trunk, self._draft, self._jury):
                cache.crop(n_columns - n_drafted)
        is_kept = torch.arange(n_columns, device=self._device) < n_kept[:, None]
        self._is_own = torch.cat([self._is_own, is_kept], dim=1)

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Drop all rows but these."""
        chosen = torch.tensor(rows, device=self._device)
        jurors = torch.arange(self._n_jurors, device=self._device)[:, None]
        in_jury = (jurors * len(self._roles) + chosen).flatten()  # (E * rows,)
        self._trunk.batch_select_indices(chosen)
        self._draft.batch_select_indices(chosen)
        self._jury.batch_select_indices(in_jury)
        self._is_own = self._is_own[chosen]
        self._assign([self._roles[row] for row in rows])

    def _assign(self, roles: Sequence[HeadRoles]) -> None:
        self._roles = list(roles)
        self._n_jurors = len(roles[0].jury)
        jurors = [role.jury[e] for e in range(self._n_jurors) for role in roles]
        self._draft_route = Route([role.draft for role in roles], self._device)
        self._jury_route = Route(jurors, self._device)

    def _n_own(self) -> torch.Tensor:
        """Return the (B,) counts of the rows' own columns, which are their next positions."""
        return self._is_own.sum(dim=1)

    def _block_mask(self, n_columns: int) -> torch.Tensor:
        """Return the (B, S, K + S) mask: a block sees its row's columns, and itself causally."""
        block = causal_mask(n_columns, self._device).expand(len(self._roles), -1, -1)
        read = self._is_own[:, None, :].expand(-1, n_columns, -1)
        return torch.cat([read, block], dim=2)

    def _draft_states(
        self, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return (B, S, D) for (B, S, D), (B, S) and (B, S, K)."""
        place = BlockInputs(positions, mask[:, None], self._draft)
        return self._net.head_states(states, self._draft_route, place)

    def _jury_states(
        self, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return (E, B, S, D) for (B, S, D), (B, S) and (B, S, K)."""
        n_jurors = self._n_jurors
        place = BlockInputs(
            positions.repeat(n_jurors, 1), mask.repeat(n_jurors, 1, 1)[:, None], self._jury
        )
        judged = self._net.head_states(states.repeat(n_jurors, 1, 1), self._jury_route, place)
        return judged.view(n_jurors, len(self._roles), *judged.shape[1:])


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
