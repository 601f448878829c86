"""Read the LoRA files of the Hydra's first authors: one head's tensors in a .pt file.

The tensors have OLMo-core's names. A file may be a whole training checkpoint, of which only LoRA is
read. It lacks the scale: lora_alpha was twice the rank in every training. Code in a pickle is never
run.
"""

import pickle
import re
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from peft import LoraConfig
from torch.serialization import get_unsafe_globals_in_checkpoint

from commands.backends.weights.lora import Lora, peft_files, read_lora, require_head_lora, shapes
from commands.entrants.hydra_import import PeftFolder
from commands.entrants.weights import file_digest
from commands.errors import WeightsError, shortened

PROJECTIONS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
KEY = re.compile(
    r"base_model\.model\.blocks\.(?P<block>[0-9]+)\.feed_forward\.(?P<weight>w[123])"
    r"\.lora_(?P<half>[AB])\.default\.weight"
)
LAYOUT = "base_model.model.blocks.N.feed_forward.w1.lora_A.default.weight"
ALPHA_PER_RANK = 2
# "Other exceptions may also be raised during unpickling", says the documentation of pickle.
UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, ArithmeticError),
    *(AttributeError, AssertionError, struct.error, pickle.UnpicklingError),
)
SAVE_AGAIN = "save the head's state_dict alone with torch.save"


class LoraPart(NamedTuple):
    """One tensor of a head: LoRA's A or B of one weight of one block."""

    block: int
    weight: str
    half: str

    @property
    def key(self) -> str:
        """Its name in the file."""
        block = f"base_model.model.blocks.{self.block}"
        return f"{block}.feed_forward.{self.weight}.lora_{self.half}.default.weight"

    def peft_key(self, first_layer: int) -> str:
        """Return peft's name for it in the whole model."""
        layer = f"base_model.model.model.layers.{first_layer + self.block}"
        return f"{layer}.mlp.{PROJECTIONS[self.weight]}.lora_{self.half}.weight"


def as_peft_folder(path: Path, layers: range, weights: str) -> PeftFolder:
    """Return a head's shard as the files of a peft folder.

    Args:
        path: The shard: a .pt file, or a peft folder.
        layers: The model's layers that are the head's own.
        weights: The name of the base weights.

    Raises:
        WeightsError: It cannot be read, or is not LoRA of these layers' MLPs alone.
    """
    lora = read_pt(path, layers) if path.suffix == ".pt" else read_lora(path)
    require_head_lora(lora, layers)
    settings = lora.settings
    return PeftFolder(
        settings.r, settings.lora_alpha, shapes(lora.tensors), peft_files(lora, weights)
    )


def read_pt(path: Path, layers: range) -> Lora:
    """Read a file as an adapter of the whole model.

    Args:
        path: The file.
        layers: The model's layers that a head's blocks are, from first to last.

    Raises:
        WeightsError: The file cannot be read or holds code, or its LoRA tensors are none, not
            all those of such a head, of another layout, or of ranks that differ.
    """
    tensors = lora_tensors(path)
    parts = parts_of(path, tensors, n_blocks=len(layers))
    rank = rank_of(path, parts, tensors)
    settings = LoraConfig(
        task_type="CAUSAL_LM",
        inference_mode=True,
        r=rank,
        lora_alpha=ALPHA_PER_RANK * rank,
        target_modules=sorted(PROJECTIONS.values()),
        layers_to_transform=list(layers),
    )
    renamed = {part.peft_key(layers.start): tensors[part.key].detach() for part in parts}
    return Lora(path, settings, renamed)


def lora_tensors(path: Path) -> Mapping[str, torch.Tensor]:
    """Return a file's LoRA tensors by its own names.

    Raises:
        WeightsError: There are none, or one is not a matrix of floats.
    """
    loaded = _load(path)
    state = loaded.get("head_state_dict", loaded) if isinstance(loaded, dict) else None
    if not isinstance(state, dict):
        why = f"it holds no tensors by name, but a {type(loaded).__name__}"
        raise WeightsError(path, why, SAVE_AGAIN)
    found = {k: v for k, v in state.items() if isinstance(k, str) and "lora_" in k}
    if not found:
        why = f"it holds no LoRA tensors, but {shortened([*map(str, state)]) or 'nothing'}"
        raise WeightsError(path, why, "save the head before its adapter is merged")
    if others := [key for key, value in found.items() if not _is_matrix(value)]:
        raise WeightsError(path, f"no matrices of floats: {shortened(others)}", SAVE_AGAIN)
    return found


def parts_of(path: Path, keys: Iterable[str], n_blocks: int) -> list[LoraPart]:
    """Return the parts of a head that a file's tensors are, in order.

    Raises:
        WeightsError: A key is of another layout or block, or a block's weight lacks its A or B:
            every training changed all three weights of every block.
    """
    matches = {key: KEY.fullmatch(key) for key in keys}
    if others := [key for key, match in matches.items() if match is None]:
        why = f"keys of another layout than {LAYOUT}: {shortened(others)}"
        raise WeightsError(path, why, "save the heads of that layout, or a folder of peft")
    parts = {LoraPart(int(m["block"]), m["weight"], m["half"]) for m in matches.values() if m}
    whole = {LoraPart(*each) for each in product(range(n_blocks), PROJECTIONS, "AB")}
    faults = [
        *(f"missing {part.key}" for part in sorted(whole - parts)),
        *(f"for another layer: {part.key}" for part in sorted(parts - whole)),
    ]
    if faults:
        why = f"it is not LoRA of a head of {n_blocks} layers: {shortened(faults)}"
        raise WeightsError(
            path, why, "set heads_depth to what it was trained with, or save it again"
        )
    return sorted(parts)


def rank_of(path: Path, parts: Sequence[LoraPart], tensors: Mapping[str, torch.Tensor]) -> int:
    """Return the rank that all parts have: A is (rank, in), B is (out, rank).

    Raises:
        WeightsError: They have several.
    """
    first = {tensors[part.key].shape["AB".index(part.half)]: part.key for part in reversed(parts)}
    if len(first) > 1:
        ranks = [f"{rank} in {key}" for rank, key in sorted(first.items())]
        why = f"its ranks differ: {shortened(ranks)}"
        raise WeightsError(path, why, "save adapters of one rank, or folders of peft")
    return next(iter(first))


def _load(path: Path) -> object:
    file_digest(path)  # rejects unreadable files and Git LFS pointers
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old pickles: the content is checked below
            loaded: object = torch.load(path, weights_only=True, map_location="cpu")
    except UNREADABLE as error:
        if code := _code_in(path):
            why = f"it holds what may be code, which is never run: {shortened(code)}"
            raise WeightsError(path, why, SAVE_AGAIN) from error
        why = "it is cut, damaged or not of torch.save"
        raise WeightsError(path, why, "fetch the file again") from error
    return loaded


def _code_in(path: Path) -> list[str]:
    """Return the names that a pickle would call, without calling them."""
    with suppress(*UNREADABLE):
        return sorted(get_unsafe_globals_in_checkpoint(path))
    return []


def _is_matrix(value: object) -> bool:
    if not isinstance(value, torch.Tensor):
        return False
    is_filled = value.ndim == 2 and value.numel() > 0  # noqa: PLR2004  # rows and columns
    return is_filled and value.is_floating_point()
