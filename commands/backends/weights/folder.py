"""Read a folder of Hugging Face weights and its tokenizer, after checking that they fit together.

Only local safetensors files are read; code and pickles in the folder are never run.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, cast

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)
from transformers.utils import logging as chatter

from commands.backends.remote.bodies import first_line
from commands.errors import WeightsError, shortened


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' warnings and progress bars within the block.

    Its handlers are told, not its loggers: these forget for each block what they log, and a forward
    pass of small weights takes little longer than that.
    """
    handlers, had_bars = (
        logging.getLogger("transformers").handlers,
        chatter.is_progress_bar_enabled(),
    )
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.ERROR)
    chatter.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so
    try:
        yield
    finally:
        for each, level in zip(handlers, levels, strict=False):
            each.setLevel(level)
        if had_bars:
            chatter.enable_progress_bar()  # type: ignore[no-untyped-call]  # likewise


DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
DOWNLOAD = "download them with `hf download ORG/NAME --local-dir FOLDER`"
UPGRADE: Final = 'upgrade transformers, or serve the weights behind a server (loader = "endpoint")'
UNREADABLE = (OSError, ValueError, SafetensorError, StrictDataclassError)


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
        WeightsError: It cannot be read, or a package that it needs is not installed.
    """
    try:
        yield
    except ImportError as error:
        why = f"{what} cannot be read: {first_line(error)}"
        raise WeightsError(folder, why, "install the package that it names") from error
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


def load_config(folder: Path) -> PreTrainedConfig:
    """Load a folder's config.json, and check that transformers can generate text with its weights.

    Raises:
        WeightsError: It is unreadable, or this transformers has no such family of decoders.
    """
    with reading(folder, "config.json"):
        raw, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
    family = raw.get("model_type")
    if family not in _DECODERS:
        why = f"transformers generates no text with weights of model_type {family!r}"
        raise WeightsError(folder, why, UPGRADE)
    with reading(folder, "config.json"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return cast("PreTrainedConfig", config)


_DECODERS: Final = {
    *MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    *MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
}


def load_model(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load a folder's weights, and check that every tensor fits.

    transformers chooses the attention that the family supports, sdpa before eager. It fills missing
    tensors with random numbers and drops unexpected ones, so both are rejected here; mismatched
    sizes are ignored while loading only to be listed with them.

    Raises:
        WeightsError: The weights are unreadable or are not those that config.json describes.
    """
    config = load_config(folder)
    with reading(folder, "the weights"):
        loaded: object = _auto_class(config).from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
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


def require_finite_weights(folder: Path) -> None:
    """Require that no tensor of a folder's files has a NaN or an infinity.

    Each file is read once in a process, until it changes.

    Raises:
        WeightsError: One has, or a file is unreadable.
    """
    broken: list[str] = []
    for file in sorted(folder.glob("*.safetensors")):
        with reading(folder, "the weights"):
            now = file.stat()
            broken += _not_finite(file, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))
    if broken:
        why = f"these tensors are not finite: {shortened(broken)}"
        raise WeightsError(folder, why, "use weights of an earlier checkpoint, or fetch them again")


@cache
def _not_finite(file: Path, _state: tuple[int, ...]) -> tuple[str, ...]:
    with safe_open(file, framework="pt") as tensors:
        return tuple(key for key in tensors.keys() if not _is_finite(tensors.get_tensor(key)))  # noqa: SIM118  # no mapping


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether all elements are finite; the extremes are NaN if any element is."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    wide = tensor.to(torch.bfloat16) if tensor.element_size() == 1 else tensor  # none for float8
    return all(extreme.isfinite() for extreme in torch.aminmax(wide))


def _auto_class(
    config: PreTrainedConfig,
) -> type[AutoModelForCausalLM] | type[AutoModelForImageTextToText]:
    """Return the class that loads a family: of a multimodal folder the whole model is loaded."""
    family = config.model_type
    whole = MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.get(family)
    is_whole = whole in (config.architectures or ()) or family not in _TEXT_ONLY
    return AutoModelForImageTextToText if whole and is_whole else AutoModelForCausalLM


_TEXT_ONLY: Final = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def dequantized(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return weights as plain floats, so that an adapter can be added to them.

    Raises:
        WeightsError: transformers cannot undo their quantisation.
    """
    if not getattr(model, "is_quantized", False):
        return model
    try:
        return cast("PreTrainedModel", model.dequantize())  # type: ignore[no-untyped-call]  # theirs
    except (NotImplementedError, ValueError, RuntimeError, ImportError) as error:
        why = f"no adapter can be merged into these quantised weights: {first_line(error)}"
        raise WeightsError(folder, why, "name the weights before quantisation") from error


def attention_of(model: PreTrainedModel) -> str | None:
    """Return the implementation of attention that computes, such as "sdpa" or "eager"."""
    chosen = getattr(model.config.get_text_config(), "_attn_implementation", None)
    return chosen if isinstance(chosen, str) else None


def n_embeddings(model: PreTrainedModel) -> int:
    """Return the number of embeddings."""
    return cast("torch.Tensor", model.get_input_embeddings().weight).shape[0]
