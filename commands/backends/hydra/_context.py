"""What a trunk and each row's heads have read so far: caches, and which columns are whose."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from transformers import DynamicCache

from commands.backends.hydra._net import BlockInputs, HydraNet, Route
from commands.backends.weights.batching import pad_left


class HeadRoles(NamedTuple):
    """What heads do for one row: one drafts, others verify."""

    draft: int
    jury: tuple[int, ...]  # equally many for all rows of a context; none where one head decides


class HydraContext:
    """Rows that are decoded together, in blocks of drafted tokens that are kept in part.

    The rows share the columns of their caches. A column that is not a row's own, such as padding
    or a draft that was rejected while another row's was accepted, is masked for that row, and
    positions count a row's own columns alone: so each row reads what it would read by itself.

    Juror e of row r stands at row e * B + r of the jury's batch.
    """

    def __init__(self, net: HydraNet, roles: Sequence[HeadRoles]) -> None:
        """Start with nothing read, and roles[r] for row r."""
        self._net, self._device = net, net.device
        self._trunk, self._draft, self._jury = DynamicCache(), DynamicCache(), DynamicCache()
        self._is_own = torch.ones(len(roles), 0, dtype=torch.bool, device=self._device)  # (B, K)
        self._assign(roles)

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> None:
        """Let trunk and heads read a prompt a row; padding stands for an empty one."""
        if not any(prompts):
            return
        ids, positions, mask, self._is_own = pad_prompts(prompts, self._device)
        states = self._net.trunk_states(ids, BlockInputs(positions, mask[:, None], self._trunk))
        self._draft_states(states, positions, mask)
        if self._n_jurors:
            self._jury_states(states, positions, mask)

    def draft(self, tokens: torch.Tensor, n_drafted: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Let trunk and draft heads read one token more a row, behind n_drafted unsettled ones.

        Returns:
            (B, D) states of the trunk, and (B, D) states of each row's draft head.
        """
        positions = self._n_own()[:, None] + n_drafted  # (B, 1)
        mask = self._block_mask(n_drafted + 1)[:, -1:]  # (B, 1, K)
        place = BlockInputs(positions, mask[:, None], self._trunk)
        states = self._net.trunk_states(tokens[:, None], place)
        return states[:, 0], self._draft_states(states, positions, mask)[:, 0]

    def verify(self, states: torch.Tensor) -> torch.Tensor:
        """Let the juries read a drafted block: (B, S, D) states of the trunk.

        Returns:
            (E, B, S, D) states of each row's jurors.
        """
        n_drafted = states.shape[1]
        positions = self._n_own()[:, None] + torch.arange(n_drafted, device=self._device)
        return self._jury_states(states, positions, self._block_mask(n_drafted))

    def keep_accepted(self, n_kept: torch.Tensor, n_drafted: int) -> None:
        """Keep the first n_kept (B,) of a row's drafted columns, and roll the others back."""
        n_columns = int(n_kept.max())
        if n_columns < n_drafted:  # to crop by 0 was to empty a cache in older transformers
            for cache in (self._trunk, self._draft, self._jury):
                cache.crop(n_columns - n_drafted)
        is_kept = torch.arange(n_columns, device=self._device) < n_kept[:, None]
        self._is_own = torch.cat([self._is_own, is_kept], dim=1)

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Forget all rows but these."""
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
        """Return (B,) how many columns are a row's own: its next position."""
        return self._is_own.sum(dim=1)

    def _block_mask(self, n_columns: int) -> torch.Tensor:
        """Return (B, S, K + S): a block's columns see the row's own, and each other causally."""
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
    """Prompts side by side, each at the right end of its row."""

    ids: torch.Tensor  # (B, S) long
    positions: torch.Tensor  # (B, S) long
    mask: torch.Tensor  # (B, S, S) bool; padding sees itself, as who sees nothing makes NaN
    is_own: torch.Tensor  # (B, S) bool, false on padding


def pad_prompts(prompts: Sequence[Sequence[int]], device: torch.device) -> PaddedPrompts:
    """Lay prompts out, of which one at least is not empty."""
    ids, is_real = (each.to(device) for each in pad_left(prompts))
    is_own = is_real.bool()
    columns = causal_mask(ids.shape[1], device)
    mask = columns & is_own[:, None, :] | torch.eye(len(columns), dtype=torch.bool, device=device)
    return PaddedPrompts(ids, (is_real.cumsum(dim=1) - 1).clamp(min=0), mask, is_own)


def causal_mask(n_columns: int, device: torch.device) -> torch.Tensor:
    """Return (S, S) bool, true on and below the diagonal."""
    return torch.ones(n_columns, n_columns, dtype=torch.bool, device=device).tril()
