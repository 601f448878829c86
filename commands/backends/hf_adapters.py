"""Merge LoRA adapters into weights with peft, wholly or not at all.

peft itself only warns of keys that are missing from an adapter's file and says nothing of keys
that fit nowhere, so the file is compared with what peft expects before its weights are loaded,
and a warning of peft's is an error here.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from peft import LoraConfig, PeftConfig, PeftModel, PeftType, get_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedModel

from commands.backends.faults import gist, listed
from commands.errors import WeightsError

Shapes = Mapping[str, tuple[int, ...]]

ADAPTER = "default"  # peft's name for an adapter that has no other
OLD_NAME = "`is_gradient_checkpointing`"  # peft 0.21 still asks transformers 5.23 by that name


def merge_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return the model with W + scale * B @ A in the place of every W the adapter is for.

    These are the steps of PeftModel.from_pretrained, with the check between the second and third.
    The model passed in is used up, whether this succeeds or not.

    Raises:
        WeightsError: The adapter cannot be read, or any part of it does not fit this model.
    """
    file = adapter_file(folder)
    with _refusals(folder):
        settings = read_settings(folder)
        adapted = PeftModel(model, settings, ADAPTER)
        check_fit(adapted, settings, file)
        adapted.load_adapter(folder, ADAPTER, torch_device="cpu")
        merged = adapted.merge_and_unload(safe_merge=True)
    return cast("PreTrainedModel", merged)


def adapter_file(folder: Path) -> Path:
    """Return the file of an adapter's tensors; its settings lie beside it.

    Raises:
        WeightsError: The folder or a file in it is missing.
    """
    if not folder.is_dir():
        raise WeightsError(folder, "there is no such adapter folder", "correct the path")
    if not (folder / "adapter_config.json").is_file():
        remedy = "name a folder written by peft's save_pretrained"
        raise WeightsError(folder, "adapter_config.json is missing", remedy)
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        remedy = "save the adapter with peft's save_pretrained, which writes that file"
        raise WeightsError(folder, "adapter_model.safetensors is missing", remedy)
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


def check_fit(adapted: PeftModel, settings: LoraConfig, file: Path) -> None:
    """Compare an adapter's file with what the model expects of it.

    Raises:
        WeightsError: A module asked for is not in the model, or a tensor is missing, of another
            shape, or for no module.
    """
    found, expected = file_shapes(file), expected_shapes(adapted)
    loadable = {**whole_shapes(adapted), **expected}
    faults = [
        *(f"no module {target!r} in the weights" for target in unmatched(settings, expected)),
        *(f"missing {key}" for key in sorted(expected.keys() - found.keys())),
        *(f"for no module: {key}" for key in sorted(found.keys() - loadable.keys())),
        *(
            f"{key} is {list(found[key])}, expected {list(loadable[key])}"
            for key in sorted(found.keys() & loadable.keys())
            if found[key] != loadable[key]
        ),
    ]
    if faults:
        remedy = "use the weights that the adapter was trained on, or save the adapter again"
        raise WeightsError(file.parent, f"the adapter does not fit: {listed(faults)}", remedy)


def unmatched(settings: LoraConfig, expected: Shapes) -> list[str]:
    """Return the modules and layers that the settings ask for and the model does not have."""
    targets = settings.target_modules
    names = [] if targets is None or isinstance(targets, str) else sorted(targets)
    layers = settings.layers_to_transform
    numbers = [] if layers is None else [layers] if isinstance(layers, int) else layers
    return [
        *(name for name in names if not any(f".{name}.lora_" in key for key in expected)),
        *(f"layer {n}" for n in numbers if not any(f".{n}." in key for key in expected)),
    ]


def file_shapes(file: Path) -> Shapes:
    """Read the shape of each tensor from the file's header."""
    with safe_open(file, framework="pt") as tensors:
        keys = tensors.keys()
        return {key: tuple(tensors.get_slice(key).get_shape()) for key in keys}


def expected_shapes(adapted: PeftModel) -> Shapes:
    """Return the shape of each tensor that the adapter must bring."""
    tensors = get_peft_model_state_dict(adapted, adapter_name=ADAPTER, save_embedding_layers=False)
    return shapes(tensors)


def whole_shapes(adapted: PeftModel) -> Shapes:
    """Return the shapes of base weights too: an adapter may bring embeddings trained with it."""
    return shapes({k: v for k, v in adapted.state_dict().items() if f".{ADAPTER}." not in k})


def shapes(tensors: Mapping[str, torch.Tensor]) -> Shapes:
    """Return the shape of each tensor."""
    return {key: tuple(tensor.shape) for key, tensor in tensors.items()}


@contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    """Translate what peft refuses, or is in doubt about, into a WeightsError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", category=UserWarning)
            warnings.filterwarnings("ignore", OLD_NAME, category=FutureWarning)
            yield
    except (ValueError, TypeError, OSError, SafetensorError, UserWarning) as error:
        remedy = "use the weights that the adapter was trained on, or upgrade peft"
        raise WeightsError(
            folder, f"peft cannot merge the adapter: {gist(error)}", remedy
        ) from error
