"""Load an entrant onto a device, and run batches of rows there.

Adapters are merged into weights in order. A batch that does not fit into memory is halved.
"""

import gc
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import torch
from transformers import (
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from commands.backends.loads import BatchQueue
from commands.backends.weights.chat import end_of_turn, require_chat
from commands.backends.weights.folder import (
    DTYPES,
    attention_of,
    check_folder,
    check_vocabulary,
    dequantized,
    load_config,
    load_model,
    load_tokenizer,
    n_embeddings,
    quiet_transformers,
    require_finite_weights,
)
from commands.backends.weights.lora import merge_lora, read_lora, require_finite
from commands.errors import ConfigurationError, WeightsError
from ledger.events.registration import Entrant


def prepare_device(name: str) -> torch.device:
    """Return the device of a name; "auto" is the best one available.

    Raises:
        ConfigurationError: The device is not available.
    """
    here = [*_devices()]
    if name == "auto":
        name = here[0]
    if name not in here:
        fault = f"device {name!r} is not here; use auto or one of: {', '.join(here)}"
        raise ConfigurationError([fault])
    return torch.device(name)


def _devices() -> Iterator[str]:
    """Yield the names of this machine's devices, the best first."""
    if torch.cuda.is_available():
        yield "cuda"
        yield from (f"cuda:{n}" for n in range(torch.cuda.device_count()))
    if torch.backends.mps.is_available():
        yield from ("mps", "mps:0")
    yield "cpu"


def free_memory(device: torch.device) -> None:
    """Free the memory of unused tensors on the device."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


class LoadedWeights(NamedTuple):
    """A model on a device, with its tokenizer, end tokens and position limit."""

    model: Any  # a PreTrainedModel, whose types are inconsistent, or a HydraNet
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    end_ids: frozenset[int]
    n_positions: int | None  # None: the weights set no limit
    attention: str | None = None  # the implementation that computes, such as "sdpa"
    may_pad: bool = True  # rows of one batch may have prompts of different lengths
    may_leave: bool = True  # rows that have ended may leave while others are decoded
    token_bytes: int = 1  # of memory that a token of a batch takes, about


def as_loaded(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> LoadedWeights:
    """Return a model in memory as loaded weights, without copying them."""
    with quiet_transformers():
        named = getattr(model.generation_config, "eos_token_id", None)
        ends = [*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id]
        end_ids = end_of_turn(tokenizer) | {n for n in ends if isinstance(n, int)}
    config = model.config.get_text_config()
    n_positions = getattr(config, "max_position_embeddings", None)
    n_layers = getattr(config, "num_hidden_layers", 0)  # a model of bytes may have none
    return LoadedWeights(
        model,
        tokenizer,
        model.device,
        end_ids,
        n_positions if isinstance(n_positions, int) else None,
        attention=attention_of(model),
        may_pad=_may_pad(model),
        may_leave=_may_leave(model),
        token_bytes=token_bytes(config, model.dtype, n_caching=n_layers),
    )


_HIDDEN: Final = 4096  # where a config has no size of its own
_N_CACHES: Final = 2  # a cache stands beside the one that it grows into, or is chosen from
_N_STATES: Final = 4  # of the hidden size, that a layer holds at once
_N_INNER: Final = 3  # of the MLP's size, likewise


def token_bytes(
    config: PreTrainedConfig, dtype: torch.dtype, *, n_caching: int, n_heads: int = 1
) -> int:
    """Estimate the bytes that a token of a batch takes: keys, values, states and logits.

    Args:
        config: The sizes; families name different things.
        dtype: Of the weights.
        n_caching: How many layers keep its keys and values, those of each head counted.
        n_heads: How many heads of a Hydra read it.
    """
    hidden = getattr(config, "hidden_size", _HIDDEN)
    inner = getattr(config, "intermediate_size", None)
    cached = _N_CACHES * n_caching * 2 * _key_size(config, hidden)
    states = _N_STATES * hidden + _N_INNER * (inner if isinstance(inner, int) else 4 * hidden)
    return int((cached + n_heads * states + config.vocab_size) * dtype.itemsize)


def _key_size(config: PreTrainedConfig, hidden: int) -> int:
    """Return how many numbers a layer keeps of a token as its key, in all heads."""
    n_heads = getattr(config, "num_attention_heads", None)
    n_shared = getattr(config, "num_key_value_heads", None) or n_heads
    size = getattr(config, "head_dim", None) or (hidden // n_heads if n_heads else None)
    if isinstance(n_shared, int) and isinstance(size, int):
        return n_shared * size
    return hidden  # a state in the place of keys, or sizes that differ by layer


def read_folder(folder: Path, *, dtype: str) -> LoadedWeights:
    """Read a folder's weights and tokenizer; they stay on the CPU.

    Raises:
        WeightsError: A file is missing, unreadable, not finite, or fits the others only in part.
    """
    check_folder(folder)
    require_finite_weights(folder)
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        tokenizer = load_tokenizer(folder)
        model = load_model(folder, DTYPES[dtype])
        check_vocabulary(tokenizer, n_embeddings(model), folder)
    return as_loaded(model, tokenizer)


def check_weights(entrant: Entrant) -> None:
    """Check all that an entrant is loaded from, without loading it.

    Raises:
        WeightsError: The family is none that transformers has, a package is missing, or the
            tokenizer, the weights or an adapter are unreadable, or not finite.
    """
    folder = Path(entrant.weights)
    check_folder(folder)
    with quiet_transformers():
        load_config(folder)
        load_tokenizer(folder)
    require_finite_weights(folder)
    for adapter in entrant.adapters:
        require_finite(read_lora(Path(adapter.path)))


def check_chat(entrant: Entrant) -> None:
    """Check that an entrant's chat template can show a prompt, with its arguments.

    Raises:
        WeightsError: It cannot.
    """
    folder = Path(entrant.weights)
    check_folder(folder)
    with quiet_transformers():
        tokenizer = load_tokenizer(folder)
        require_chat(tokenizer, folder, [entrant.chosen])


def load_weights(entrant: Entrant, device: torch.device) -> LoadedWeights:
    """Load an entrant's weights and adapters.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    adapters = [Path(adapter.path) for adapter in entrant.adapters]
    return load_folder(Path(entrant.weights), device, dtype=str(entrant.dtype), adapters=adapters)


def load_folder(
    folder: Path, device: torch.device, *, dtype: str, adapters: Sequence[Path] = ()
) -> LoadedWeights:
    """Load a folder's weights and tokenizer and merge adapters, on the CPU, then move them.

    Merging on the CPU gives the same weights whatever the device.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    read = read_folder(folder, dtype=dtype)
    model: PreTrainedModel = read.model
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        if adapters:
            model = dequantized(model, folder)
        for adapter in adapters:
            model = merge_lora(model, read_lora(adapter))
    # else generate() adds the folder's own settings
    model.generation_config = GenerationConfig.from_dict({})
    return read._replace(model=move_to_device(model, device, folder), device=device)


def move_to_device(module: torch.nn.Module, device: torch.device, folder: Path) -> torch.nn.Module:
    """Move a module to a device, for inference.

    Raises:
        WeightsError: The device's memory is too small.
    """
    try:
        return module.eval().to(device)
    except torch.OutOfMemoryError as error:
        remedy = (
            "choose a smaller [generation] dtype, or serve the weights from several cards and"
            ' compare them by loader = "endpoint"'
        )
        raise WeightsError(folder, f"the weights do not fit on {device}", remedy) from error


# Their layers read padding as text, whatever the mask says: the contract test of families shows it.
_READS_PADDING: Final = frozenset({"minimax", "recurrent_gemma", "rwkv", "xlm"})


def _may_pad(model: PreTrainedModel) -> bool:
    """Return whether rows of a batch may be padded on the left without changing their tokens."""
    return model.config.get_text_config().model_type not in _READS_PADDING


def _may_leave(model: PreTrainedModel) -> bool:
    """Return whether rows that have ended may leave a batch while others are decoded.

    A family's layers must keep keys and values by column, and no other state; windows of attention
    are a matter of the mask. Of multimodal models `generate` knows more.
    """
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return (
        _may_pad(model)
        and config is model.config
        and kinds <= {"full_attention", "sliding_attention", "chunked_attention"}
        and not model._is_stateful  # noqa: SLF001  # transformers has no public name for it
        and "past_key_values" in inspect.signature(model.forward).parameters
    )


PAD_ID = 0  # always masked, so any token will do; `pad_sequence` fills in zeros

Row = TypeVar("Row")


def padded(
    rows: Sequence[Sequence[int]], device: torch.device, *, side: Literal["left", "right"] = "left"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (B, T) tokens, padded on a side, and the (B, T) mask that is 1 on real tokens."""
    tensors = [torch.tensor(row, device=device) for row in rows]
    masks = [torch.ones_like(row) for row in tensors]
    pad = partial(torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_side=side)
    return pad(tensors), pad(masks)


logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def run_batches(
    queue: BatchQueue[Row], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Iterator[tuple[tuple[Row, ...], Result | None]]:
    """Yield each batch with its result; None for a single row that does not fit into memory."""
    while batch := queue.take():
        result = _try_batch(batch, answer, device)
        if result is None and len(batch) > 1:
            queue.halve(batch)
        else:
            yield batch, result


def _try_batch(
    batch: tuple[Row, ...], answer: Callable[[tuple[Row, ...]], Result], device: torch.device
) -> Result | None:
    """Return a batch's result; None if the device ran out of memory."""
    try:
        return answer(batch)
    except torch.OutOfMemoryError:
        logger.info("out of memory on %s with a batch of %d rows", device, len(batch))
    free_memory(device)  # here, as the error's traceback no longer holds the tensors
    return None
