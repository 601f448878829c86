"""LoRA on the MLPs of the heads' layers: put on weights, saved, and merged."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save
from transformers import Olmo2ForCausalLM

from chat import write_json
from heads import HEADS_DEPTH

RANK = 4


def adapt(weights: Olmo2ForCausalLM) -> PeftModel:
    """Freeze weights and put LoRA on the MLPs of their last layers."""
    n_layers = weights.config.num_hidden_layers
    config = LoraConfig(
        r=RANK,
        lora_alpha=2 * RANK,
        target_modules=["down_proj", "gate_proj", "up_proj"],
        layers_to_transform=list(range(n_layers - HEADS_DEPTH, n_layers)),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(weights, config)


def inner_weights(adapted: PeftModel) -> Olmo2ForCausalLM:
    """Return the weights with LoRA in them, without peft's wrapping."""
    return cast("Olmo2ForCausalLM", adapted.get_base_model())


def save_lora(adapted: PeftModel, folder: Path, weights: Path) -> None:
    """Save LoRA alone, in bfloat16, its config in one order and with a relative path."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = get_peft_model_state_dict(adapted)
    halved = {name: tensor.bfloat16().contiguous() for name, tensor in tensors.items()}
    content = save(halved, metadata={"format": "pt"})
    (folder / "adapter_model.safetensors").write_bytes(content)
    config = adapted.peft_config["default"].to_dict()
    config["base_model_name_or_path"] = os.path.relpath(weights, folder)
    config["target_modules"] = sorted(config["target_modules"])
    write_json(folder / "adapter_config.json", config)


def load_merged(weights: Path, loras: Sequence[Path] = ()) -> Olmo2ForCausalLM:
    """Load weights as float32 with LoRA merged into them in order."""
    merged = Olmo2ForCausalLM.from_pretrained(weights, dtype=torch.float32)
    for folder in loras:
        merged = PeftModel.from_pretrained(merged, folder).merge_and_unload()
    return merged
