"""What drafts are measured against: the same product of experts, decoded a token at a time."""

from collections.abc import Sequence

import torch
from transformers import DynamicCache

from commands.backends.hydra._net import HydraNet
from commands.backends.hydra._poe import draw, product_of_experts
from commands.backends.hydra.decoding import HydraDecoding
from commands.backends.hydra.rows import HydraRow
from commands.backends.weights.sampling import uniforms
from tests.benchmarks.heads.jury import Jury, behind


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
    said = []
    for _ in range(decoding.max_new_tokens):
        states = jury.read(net.trunk_states(unread, behind(trunk, unread)))  # (E, B, S, D)
        log_p = product_of_experts(
            net.logits(states[:, :, -1]),
            temperature=decoding.product_temperature,
            beta=decoding.beta,
        )  # (B, V)
        luck = uniforms([row.stream for row in rows], 1, net.device)  # (B, 1)
        said.append(draw(decoding.decision_distribution(log_p), luck[:, 0]))
        unread = said[-1][:, None]
    return torch.stack(said, dim=1).tolist()
