"""What a Hydra is measured against: the same product without a draft."""

from collections.abc import Sequence

import torch
from torch.nn.functional import pad
from transformers import DynamicCache

from commands.backends.hydra.decoding import HydraRow
from commands.backends.hydra.net import HydraNet, Route, TokenBlock
from commands.backends.hydra.poe import point_mass, product_of_experts
from commands.backends.weights.sampling import RowNoise, n_draws, sample
from tests.support.weights.hydra import HydraDecoding


@torch.inference_mode()
def decode_jointly(
    net: HydraNet, rows: Sequence[HydraRow], decoding: HydraDecoding
) -> list[list[int]]:
    """Return max_new_tokens of each row, all prompts being equally long.

    What is drawn follows the distribution that `decode` follows; where nothing is drawn, it is the
    same text. Unlike `decode` it measures nothing on the way, so it has less to do.
    """
    n_rows, n_jury = len(rows), len(rows[0].jury)
    heads = [head for heads in zip(*(row.jury for row in rows), strict=True) for head in heads]
    route, cache = Route(heads, net.device), DynamicCache()
    unread = torch.tensor([row.row.prompt_ids for row in rows], device=net.device)  # (B, S)
    is_own = torch.ones_like(unread).bool()
    noise = RowNoise([row.row.seed for row in rows], net.device)
    said = []
    for _ in range(decoding.max_new_tokens):
        block = TokenBlock.behind(is_own, unread.shape[1])
        states = net.trunk_states(unread, block, cache)
        states = net.head_states(states, route, block, cache)[:, -1]  # (E * B, D)
        log_p = product_of_experts(
            net.logits(states.view(n_jury, n_rows, -1)),
            temperature=decoding.product_temperature,
            beta=decoding.beta,
        )  # (B, V)
        uniform = noise.step(n_draws(log_p.shape[-1]))
        point = point_mass(log_p) if decoding.temperature is None else log_p
        said.append(sample(point, uniform).tokens)
        unread = said[-1][:, None]
        is_own = pad(is_own, (0, 1), value=True)
    return torch.stack(said, dim=1).tolist()
