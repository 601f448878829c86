"""LoRA adapters as peft writes them: a folder with settings and tensors."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from peft import LoraConfig, PeftConfig, PeftType
from safetensors.torch import load_file, save
from transformers import PreTrainedModel

from commands.backends.lora import Lora, merge_lora, refusals
from commands.errors import WeightsError

SETTINGS, TENSORS = "adapter_config.json", "adapter_model.safetensors"


def merge_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with a folder's adapter merged; the model passed in is used up.

    Raises:
        WeightsError: The adapter cannot be read, or any part of it does not fit this model.
    """
    return merge_lora(model, read_lora(folder))


def read_lora(folder: Path) -> Lora:
    """Read an adapter's folder.

    Raises:
        WeightsError: The folder or a file in it is missing or unreadable, or it is no LoRA.
    """
    file = adapter_file(folder)
    with refusals(folder):
        return Lora(folder, read_settings(folder), load_file(file))


def adapter_file(folder: Path) -> Path:
    """Return the file of an adapter's tensors; its settings lie beside it.

    Raises:
        WeightsError: The folder or a file in it is missing.
    """
    if not folder.is_dir():
        raise WeightsError(folder, "there is no such adapter folder", "correct the path")
    if not (folder / SETTINGS).is_file():
        remedy = "name a folder written by peft's save_pretrained"
        raise WeightsError(folder, f"{SETTINGS} is missing", remedy)
    file = folder / TENSORS
    if not file.is_file():
        remedy = "save the adapter with peft's save_pretrained, which writes that file"
        raise WeightsError(folder, f"{TENSORS} is missing", remedy)
    return file


def read_settings(folder: Path) -> LoraConfig:
    """Read an adapter's settings.

    Raises:
        WeightsError: The adapter is of another kind than LoRA.
    """
    settings = PeftConfig.from_pretrained(str(folder))
    if not isinstance(settings, LoraConfig) or settings.peft_type != PeftType.LORA:
        why = f"the adapter is of type {settings.peft_type!r}, only LORA can be merged"
        raise WeightsError(folder, why, "train a LoRA adapter or merge this one into the weights")
    return settings


def peft_files(lora: Lora, weights: str) -> Mapping[str, bytes]:
    """Return an adapter's folder as files by name, the same bytes whenever it is written.

    Args:
        lora: The adapter.
        weights: What the settings say it was trained on.
    """
    settings = lora.settings.to_dict()  # type: ignore[no-untyped-call]  # theirs
    settings["base_model_name_or_path"] = weights
    written = json.dumps(settings, indent=2, sort_keys=True, default=sorted)  # of sets
    tensors = {
        key: tensor.clone(memory_format=torch.contiguous_format)
        for key, tensor in lora.tensors.items()
    }
    return {
        SETTINGS: f"{written}\n".encode(),
        TENSORS: save(tensors, metadata={"format": "pt"}),
    }
