"""A Hydra whose heads look up what follows a token."""

import torch
from torch import nn

from commands.backends.hydra._net import BlockInputs, HydraNet, Route


class TableNet(HydraNet):
    """Heads of which all can be worked out by hand: each says the same after the same token.

    Their states are their logits; the trunk's are the tokens.
    """

    def __init__(self, table: torch.Tensor) -> None:
        """Let head k say table[k, t] after token t: (K, V, V) logits."""
        nn.Module.__init__(self)  # there are no weights to take apart
        self.n_heads = len(table)
        self.table = table

    @property
    def device(self) -> torch.device:
        """Where the table is."""
        return self.table.device

    def trunk_states(self, ids: torch.Tensor, _: BlockInputs) -> torch.Tensor:
        """Return (R, S, 1) for (R, S)."""
        return ids[..., None]

    def head_states(self, states: torch.Tensor, route: Route, _: BlockInputs) -> torch.Tensor:
        """Return (R, S, V) for (R, S, 1)."""
        said = torch.empty(*states.shape[:2], self.table.shape[-1])
        for head, rows in route.rows_of.items():
            said[rows] = self.table[head][states[rows, :, 0]]
        return said

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return what are logits already."""
        return states
