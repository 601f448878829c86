"""The heads of a Hydra share all but what LoRA changes, in a fraction of the memory."""

from pathlib import Path

import pytest
import torch

from commands.backends.hydra.net import HydraNet, head_mlps
from commands.backends.weights.lora import read_lora
from tests.support.weights.hydra import DEPTH, HydraFiles, copied_head, save_shard


@pytest.mark.parametrize(("name", "n_tensors"), [("gate_proj", 3), ("up_proj", 1)])
def test_what_lora_leaves_alone_is_one_tensor(
    hydra_files: HydraFiles, tmp_path: Path, name: str, n_tensors: int
) -> None:
    """Nine heads of 7B weights fit on a device only if they share, there as well as here."""
    model = copied_head(hydra_files.weights)
    shards = [save_shard(tmp_path / f"{n}", seed=n, targets=["gate_proj"]) for n in range(3)]
    heads = [head_mlps(model, DEPTH, [read_lora(shard)]) for shard in shards]

    net = HydraNet(model, heads).to(torch.bfloat16)

    for layer in net.head_layers:
        tensors = [mlp.get_parameter(f"{name}.weight") for mlp in layer.mlp.mlps]
        assert len({each.data_ptr() for each in tensors}) == n_tensors
