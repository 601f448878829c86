"""A Hydra's heads, as their log-likelihoods are computed: as it samples at temperature 1.

P_d is the product of the other heads' experts or, without a jury, head d's own distribution.
"""

import torch

from commands.backends.hydra.net import HydraNet, Route, TokenBlock
from commands.backends.hydra.poe import product_of_experts
from ledger.events.registration import Hydra


class HydraHeads:
    """All heads that may draft, as `Heads`."""

    def __init__(self, net: HydraNet, hydra: Hydra) -> None:
        """Take a net, and how its heads decide."""
        self._net, self._beta, self.device = net, hydra.beta, net.device
        self._is_alone = hydra.bypass_jury or net.n_heads == 1
        self.n_logits = net.n_heads * net.lm_head.out_features

    def states(self, ids: torch.Tensor, n_last: int) -> torch.Tensor:
        """Return (H, R, n_last, D) states."""
        n_rows, n_columns = ids.shape
        block = TokenBlock.behind(torch.ones_like(ids).bool(), n_columns)
        route = Route.every_head(self._net.n_heads, n_rows, self.device)
        states = self._net.head_states(
            self._net.trunk_states(ids, block, None), route, block, None
        )[:, -n_last:]
        return states.view(self._net.n_heads, n_rows, n_last, -1)

    def log_p(self, states: torch.Tensor) -> torch.Tensor:
        """Return log P_d for each head d that may draft."""
        logits = self._net.logits(states)  # (H, m, V)
        if self._is_alone:
            return logits.float().log_softmax(dim=-1)
        juries = [torch.cat([logits[:d], logits[d + 1 :]]) for d in range(len(logits))]
        return torch.stack(
            [product_of_experts(jury, temperature=1.0, beta=self._beta) for jury in juries]
        )
