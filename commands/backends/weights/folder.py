"""Read a folder of Hugging Face weights and its tokenizer, after checking that they fit together.

Only local safetensors files are read; code and pickles in the folder are never run.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as chatter

from commands.backends.remote.bodies import first_line
from commands.errors import WeightsError, shortened


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' warnings and progress bars within the block."""
    verbosity, had_bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.ERROR)
    chatter.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        if had_bars:
            chatter.enable_progress_bar()  # type: ignore[no-untyped-call]  # likewise


DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
DOWNLOAD = "download them with `hf download ORG/NAME --local-dir FOLDER`"
UNREADABLE = (OSError, ValueError, ImportError, SafetensorError, StrictDataclassError)


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, n_tokens: int, folder: Path) -> None:
    """Check that the weights have an embedding for each token of the tokenizer.

    More embeddings than tokens are padding, as OLMo 2 has, and do no harm.

    Raises:
        WeightsError: A token has no embedding.
    """
    last = max(tokenizer.get_vocab().values(), default=-1)
    if last >= n_tokens:
        why = f"the tokenizer's tokens go up to {last}, the weights' embeddings to {n_tokens - 1}"
        raise WeightsError(
            folder, why, "put the tokenizer there that the weights were trained with"
        )


def check_folder(folder: Path) -> None:
    """Check that a folder has the files of weights.

    Raises:
        WeightsError: The folder, its config or its safetensors are missing, or it is an adapter's.
    """
    if not folder.is_dir():
        raise WeightsError(folder, "there is no such folder of weights", DOWNLOAD)
    if (folder / "adapter_config.json").exists():
        remedy = "name the base weights here and this folder under the entrant's adapters"
        raise WeightsError(folder, "this is an adapter", remedy)
    if not (folder / "config.json").is_file():
        raise WeightsError(folder, "config.json is missing", DOWNLOAD)
    if not any(folder.glob("*.safetensors")):
        remedy = f"{DOWNLOAD}, in the safetensors format"
        raise WeightsError(folder, "there are no *.safetensors files", remedy)


@contextmanager
def reading(folder: Path, what: str) -> Iterator[None]:
    """Translate errors while something of a folder is read.

    Raises:
        WeightsError: It cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        raise WeightsError(
            folder, f"{what} cannot be read: {first_line(error)}", DOWNLOAD
        ) from error


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load a folder's tokenizer.

    Raises:
        WeightsError: The tokenizer is missing or unreadable.
    """
    with reading(folder, "the tokenizer"):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def load_model(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load a folder's weights, and check that every tensor fits.

    transformers fills missing tensors with random numbers and drops unexpected ones, so both are
    rejected here; mismatched sizes are ignored while loading only to be listed with them.

    Raises:
        WeightsError: The weights are unreadable or are not those that config.json describes.
    """
    with reading(folder, "the weights"):
        loaded: object = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            attn_implementation="sdpa",
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    model, report = cast("tuple[PreTrainedModel, dict[str, set[str]]]", loaded)
    faults = [
        *(f"missing {key}" for key in sorted(report["missing_keys"])),
        *(f"left over {key}" for key in sorted(report["unexpected_keys"])),
        *(f"of another size {key[0]}" for key in sorted(report["mismatched_keys"])),
    ]
    if faults:
        why = f"config.json and the weights disagree: {shortened(faults)}"
        raise WeightsError(folder, why, DOWNLOAD)
    return model


def n_embeddings(model: PreTrainedModel) -> int:
    """Return the number of embeddings."""
    return cast("torch.Tensor", model.get_input_embeddings().weight).shape[0]


def own_end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the end tokens that the weights' and the tokenizer's settings name."""
    named = getattr(model.generation_config, "eos_token_id", None)
    ids = named if isinstance(named, list) else [named]
    return frozenset(n for n in [*ids, tokenizer.eos_token_id] if isinstance(n, int))


def n_positions(model: PreTrainedModel) -> int | None:
    """Return the largest number of positions; None if the weights set no limit."""
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) else None
