"""The LoRA shard of a Hydra's head as a file, of either kind."""

from pathlib import Path

from commands.backends.hf_adapters import peft_files, read_lora
from commands.backends.lora import Lora, require_head_lora, shapes
from commands.backends.pt_lora import read_pt
from commands.hydra_import import PeftFolder


def shard_lora(path: Path, layers: range) -> Lora:
    """Read a head's shard: a folder of peft, or a `.pt` file.

    Args:
        path: The shard.
        layers: The model's layers that are the head's own.

    Raises:
        WeightsError: It cannot be read, or is not LoRA of these layers' MLPs alone.
    """
    lora = read_pt(path, layers) if path.suffix == ".pt" else read_lora(path)
    require_head_lora(lora, layers)
    return lora


def as_peft_folder(path: Path, layers: range, weights: str) -> PeftFolder:
    """Return a head's shard as a folder of peft, which says what weights it was trained on.

    Raises:
        WeightsError: It cannot be read, or is not LoRA of these layers' MLPs alone.
    """
    lora = shard_lora(path, layers)
    settings = lora.settings
    return PeftFolder(
        settings.r, settings.lora_alpha, shapes(lora.tensors), peft_files(lora, weights)
    )
