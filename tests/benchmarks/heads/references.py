"""What a Hydra is measured against: the same product without a draft."""

from collections.abc import Sequence

import torch
from transformers import DynamicCache

from commands.backends.hydra._net import BlockInputs, HydraNet, Route
from commands.backends.hydra._poe import product_of_experts
from commands.backends.hydra.decoding import HydraDecoding
from commands.backends.hydra.rows import HydraRow
from commands.backends.weights.sampling import RowNoise, n_draws, sample


class Jury:
    """Equally many heads a row; head e of row r stands at row e * B + r of their batch."""

    def __init__(self, net: HydraNet, heads_of_rows: Sequence[Sequence[int]]) -> None:
        """Start with nothing read."""
        self._net, self._n_heads = net, len(heads_of_rows[0])
        by_place = zip(*heads_of_rows, strict=True)
        self._route = Route([head for heads in by_place for head in heads], net.device)
        self._cache = DynamicCache()

    def read(self, states: torch.Tensor) -> torch.Tensor:
        """Return the heads' (E, B, S, D) states of the trunk's (B, S, D)."""
        of_all = states.repeat(self._n_heads, 1, 1)
        read = self._net.head_states(of_all, self._route, behind(self._cache, of_all))
        return read.view(self._n_heads, *states.shape)


def behind(cache: DynamicCache, block: torch.Tensor) -> BlockInputs:
    """Return the place of a block (R, S, ...) behind all that a cache holds of R rows."""
    n_rows, n_tokens = block.shape[:2]
    n_read = cache.get_seq_length()
    columns = torch.arange(n_read + n_tokens, device=block.device)  # (K,)
    positions = columns[n_read:].expand(n_rows, -1)  # (R, S)
    mask = columns <= positions[..., None]  # (R, S, K)
    return BlockInputs(positions, mask[:, None], cache)


@torch.inference_mode()
def decode_jointly(
    net: HydraNet, rows: Sequence[HydraRow], decoding: HydraDecoding
) -> list[list[int]]:
    """Return max_new_tokens of each row, all prompts being equally long.

    What is drawn follows the distribution that `decode` follows; where nothing is drawn, it is the
    same text. Unlike `decode` it measures nothing on the way, so it has less to do.
    """
    trunk, jury = DynamicCache(), Jury(net, [row.roles.jury for row in rows])
    unread = torch.tensor([list(row.prompt_ids) for row in rows], device=net.device)  # (B, S)
    noise = RowNoise([row.seed for row in rows], net.device)
    said = []
    for _ in range(decoding.max_new_tokens):
        states = jury.read(net.trunk_states(unread, behind(trunk, unread)))  # (E, B, S, D)
        log_p = product_of_experts(
            net.logits(states[:, :, -1]),
            temperature=decoding.product_temperature,
            beta=decoding.beta,
        )  # (B, V)
        uniform = noise.step(n_draws(log_p.shape[-1]))
        said.append(sample(decoding.decision_distribution(log_p), uniform).tokens)
        unread = said[-1][:, None]
    return torch.stack(said, dim=1).tolist()
