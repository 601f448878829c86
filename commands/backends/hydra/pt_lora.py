"""Read the LoRA files of the Hydra's first authors: one head's tensors in a .pt file.

The tensors have OLMo-core's names. A file may be a whole training checkpoint, of which only LoRA is
read. It lacks the scale: lora_alpha was twice the rank in every training. Code in a pickle is never
run.
"""

import pickle
import re
import struct
import warnings
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import torch
from peft import LoraConfig
from torch.serialization import get_unsafe_globals_in_checkpoint

from commands.backends.weights.lora import Lora, peft_files, read_lora, require_head_lora, shapes
from commands.entrants.hydra_import import PeftFolder
from commands.entrants.weights import file_digest, head_depth
from commands.errors import WeightsError, shortened

PROJECTIONS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
KEY = re.compile(
    r"base_model\.model\.blocks\.([0-9]+)\.feed_forward\.w[123]\.lora_[AB]\.default\.weight"
)
LAYOUT = "base_model.model.blocks.N.feed_forward.w1.lora_A.default.weight"
ALPHA_PER_RANK = 2
# "Other exceptions may also be raised during unpickling", says the documentation of pickle.
UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, ArithmeticError),
    *(AttributeError, AssertionError, struct.error, pickle.UnpicklingError),
)
SAVE_AGAIN = "save the head's state_dict alone with torch.save"


def as_peft_folder(path: Path, n_layers: int, weights: str) -> PeftFolder:
    """Return a head's shard as the files of a peft folder.

    Args:
        path: The shard: a .pt file, or a peft folder.
        n_layers: How many layers the base weights have; the head's are the last ones.
        weights: The name of the base weights.

    Raises:
        WeightsError: It cannot be read, or is not LoRA of the MLPs of such layers alone.
    """
    lora = read_pt(path, n_layers) if path.suffix == ".pt" else read_lora(path)
    depth = head_depth(lora.tensors, n_layers)
    require_head_lora(lora, range(n_layers - depth, n_layers))
    rank, alpha = lora.settings.r, lora.settings.lora_alpha
    return PeftFolder(rank, alpha, depth, shapes(lora.tensors), peft_files(lora, weights))


def read_pt(path: Path, n_layers: int) -> Lora:
    """Read a file as an adapter of the whole model, whose last layers are its blocks.

    Raises:
        WeightsError: The file cannot be read or holds code, or its LoRA tensors are none, not
            all those of a head, of another layout, or of ranks that differ.
    """
    tensors = lora_tensors(path)
    layers = range(n_layers - _n_blocks(path, tensors), n_layers)
    names = {
        f"base_model.model.blocks.{block}.feed_forward.{weight}.lora_{half}.default.weight": (
            f"base_model.model.model.layers.{layer}.mlp.{projection}.lora_{half}.weight"
        )
        for block, layer in enumerate(layers)
        for weight, projection in PROJECTIONS.items()
        for half in "AB"
    }
    _require_whole(path, tensors.keys(), names.keys())
    rank = _rank_of(path, {name: tensors[name] for name in names})
    settings = LoraConfig(
        task_type="CAUSAL_LM",
        inference_mode=True,
        r=rank,
        lora_alpha=ALPHA_PER_RANK * rank,
        target_modules=sorted(PROJECTIONS.values()),
        layers_to_transform=list(layers),
    )
    return Lora(path, settings, {theirs: tensors[name].detach() for name, theirs in names.items()})


def _n_blocks(path: Path, keys: Iterable[str]) -> int:
    """Return how many blocks a file is of, by their numbers, which start at 0 in each head."""
    blocks = {key: KEY.fullmatch(key) for key in keys}
    if others := [key for key, block in blocks.items() if block is None]:
        why = f"keys of another layout than {LAYOUT}: {shortened(others)}"
        raise WeightsError(path, why, "save the heads of that layout, or a folder of peft")
    return 1 + max(int(block[1]) for block in blocks.values() if block)


def _require_whole(path: Path, found: AbstractSet[str], expected: AbstractSet[str]) -> None:
    """Require that a file has all tensors of a head.

    Every training changed all three weights of every block.
    """
    if missing := sorted(expected - found):
        n_layers = len(expected) // (2 * len(PROJECTIONS))
        why = f"it is not LoRA of a head of {n_layers} layers: missing {shortened(missing)}"
        raise WeightsError(path, why, "save it again")


def _rank_of(path: Path, tensors: Mapping[str, torch.Tensor]) -> int:
    """Return the rank that all tensors have: A is (rank, in), B is (out, rank)."""
    of_rank: dict[int, str] = {}
    for key, tensor in tensors.items():
        of_rank.setdefault(tensor.shape["lora_B" in key], key)
    if len(of_rank) > 1:
        ranks = [f"{rank} in {key}" for rank, key in sorted(of_rank.items())]
        why = f"its ranks differ: {shortened(ranks)}"
        raise WeightsError(path, why, "save adapters of one rank, or folders of peft")
    return next(iter(of_rank))


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
