"""The heads of a Hydra are what whole models of their own would be, in a fraction of the memory."""

import copy
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import Olmo2ForCausalLM

from commands.backends.hydra.net import HydraNet, Route, TokenBlock, head_mlps
from commands.backends.hydra.weights import read_shards
from commands.backends.weights.batching import padded
from commands.backends.weights.lora import Lora, read_lora
from tests.support.weights.hydra import (
    DEPTH,
    N_HEADS,
    HydraFiles,
    adapter,
    copied_head,
    hydra_entrant,
    save_shard,
    tiny_olmo2,
)

CPU = torch.device("cpu")
PROMPTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14], [15, 16]]


def shards_of(files: HydraFiles) -> list[list[Lora]]:
    """Read the shards of the full jury and of uncertainty."""
    heads = hydra_entrant(files, uncertainty=adapter(files.uncertainty)).hydra
    assert heads is not None
    return read_shards(hydra_entrant(files), heads)


@pytest.fixture(scope="module")
def net(hydra_files: HydraFiles) -> HydraNet:
    """Give a Hydra grown from shards, its uncertainty head the last."""
    return build_hydra(copied_head(hydra_files.weights), shards_of(hydra_files))


@pytest.fixture(scope="module")
def copies(hydra_files: HydraFiles) -> list[Olmo2ForCausalLM]:
    """Give a whole model for some of these heads: the first, the last, and that for uncertainty."""
    weights, security, robustness, uncertainty = hydra_files
    return [
        copied_head(weights, security[0], robustness[0]),
        copied_head(weights, security[-1], robustness[-1]),
        copied_head(weights, uncertainty),
    ]


def build_hydra(model: Olmo2ForCausalLM, shards: list[list[Lora]]) -> HydraNet:
    """Build a Hydra from a model, with a head for each sequence of shards."""
    return HydraNet(model, [head_mlps(model, DEPTH, loras) for loras in shards])


@torch.inference_mode()
def logits_of(net: HydraNet, prompts: list[list[int]], heads: list[int]) -> list[torch.Tensor]:
    """Return (S, V) logits of each prompt by a head each, read in one batch without a cache."""
    ids, mask = padded(prompts, CPU)
    block = TokenBlock.behind(mask.bool(), ids.shape[1])
    states = net.trunk_states(ids, block, None)
    states = net.head_states(states, Route(heads, CPU), block, None)
    return [each[own] for each, own in zip(net.logits(states), mask.bool(), strict=True)]


@torch.inference_mode()
def plain_logits(model: Olmo2ForCausalLM, prompt: list[int]) -> torch.Tensor:
    """Return (S, V) logits of a prompt by itself."""
    logits: torch.Tensor = model(torch.tensor([prompt])).logits
    return logits[0]


def test_heads_that_have_learnt_nothing_say_what_the_weights_say() -> None:
    """Taking a model apart must lose nothing, in rows of any length and by any head."""
    plain = tiny_olmo2(seed=1)
    net = build_hydra(copy.deepcopy(plain), [[]] * N_HEADS)

    found = logits_of(net, PROMPTS, heads=[3, 0, 2, 3])

    for logits, prompt in zip(found, PROMPTS, strict=True):
        torch.testing.assert_close(logits, plain_logits(plain, prompt), rtol=0, atol=1e-5)


def test_a_head_says_what_a_whole_model_of_its_own_would(
    net: HydraNet, copies: list[Olmo2ForCausalLM]
) -> None:
    """Security first, then robustness, as peft merges them; and the uncertainty head's alone."""
    heads = [0, N_HEADS - 1, N_HEADS]

    found = logits_of(net, [PROMPTS[2]] * len(heads), heads)

    for logits, model in zip(found, copies, strict=True):
        torch.testing.assert_close(logits, plain_logits(model, PROMPTS[2]), rtol=0, atol=1e-5)
    apart = [(one - other).abs().max() for one, other in pairwise(found)]
    assert min(apart) > 0.1  # or equal heads would pass


def own_parameters(net: HydraNet, layer: int, name: str) -> list[nn.Parameter]:
    """Return each head's tensor of that name."""
    return [mlp.get_parameter(f"{name}.weight") for mlp in net.head_layers[layer].mlp.mlps]


def test_what_lora_leaves_alone_is_one_tensor(hydra_files: HydraFiles, tmp_path: Path) -> None:
    """Nine heads of 7B weights fit on a device only if they share, there as well as here."""
    shards = [save_shard(tmp_path / f"{n}", seed=n, targets=["gate_proj"]) for n in range(3)]
    loras = [[read_lora(shard)] for shard in shards]

    net = build_hydra(copied_head(hydra_files.weights), loras).to(torch.bfloat16)

    for layer in range(DEPTH):
        assert len({each.data_ptr() for each in own_parameters(net, layer, "gate_proj")}) == 3
        assert len({each.data_ptr() for each in own_parameters(net, layer, "up_proj")}) == 1
        assert len({each.data_ptr() for each in own_parameters(net, layer, "down_proj")}) == 1
