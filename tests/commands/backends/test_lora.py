"""LoRA in memory, and what of it a head may bring."""

from pathlib import Path

import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, PreTrainedModel

from commands.backends.weights.lora import Lora, merge_lora, read_lora, require_head_lora
from commands.errors import WeightsError

LAYER = "base_model.model.model.layers"
LAYERS = range(4, 6)


def base(weights: Path) -> PreTrainedModel:
    """Load the weights that the adapters are for."""
    return AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)


def lora_of(*keys: str) -> Lora:
    """Return LoRA of these tensors, the key of the file's place left out."""
    return Lora(Path("shard_0"), LoraConfig(), {key: torch.ones(1) for key in keys})


def test_lora_that_was_merged_can_be_merged_again(
    weights: Path, adapters: tuple[Path, Path]
) -> None:
    """Nine heads start from the same weights; what is in memory must not change in between."""
    lora = read_lora(adapters[0])

    first, second = (merge_lora(base(weights), lora).state_dict() for _ in range(2))

    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert lora.settings == read_lora(adapters[0]).settings


def test_lora_of_a_heads_mlps_passes() -> None:
    """Its three weights in the head's layers are what a shard changes."""
    keys = [
        f"{LAYER}.{n}.mlp.{projection}_proj.lora_{half}.weight"
        for n in LAYERS
        for projection in ("gate", "up", "down")
        for half in "AB"
    ]

    require_head_lora(lora_of(*keys), LAYERS)


@pytest.mark.parametrize(
    "key",
    [
        f"{LAYER}.3.mlp.up_proj.lora_A.weight",
        f"{LAYER}.6.mlp.up_proj.lora_A.weight",
        f"{LAYER}.5.self_attn.q_proj.lora_A.weight",
        f"{LAYER}.5.mlp.up_proj.base_layer.weight",
        "base_model.model.lm_head.weight",
    ],
)
def test_lora_for_anything_else_is_refused_by_key(key: str) -> None:
    """Heads share all else: what one shard changed there would change every head."""
    lora = lora_of(f"{LAYER}.5.mlp.up_proj.lora_B.weight", key)

    with pytest.raises(WeightsError, match="LoRA for another layer or module") as refusal:
        require_head_lora(lora, LAYERS)

    assert refusal.value.why.endswith(f"than the MLPs of layers 4 to 5: {key}")
