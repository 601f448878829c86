"""The models that `Evaluator` evaluates: one that is being trained, or a checkpoint."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import torch
from msgspec.structs import replace
from transformers import GenerationConfig, PreTrainedModel

from commands.backends.huggingface.local import Load, load_entrant
from commands.backends.weights.folder import DTYPES
from commands.backends.weights.loaded import as_loaded
from commands.entrants.files import read_checkpoint
from commands.errors import ConfigurationError
from commands.settings.schema import GenerationSection
from ledger.events.registration import SAMPLER, Entrant
from ledger.identity import Digest, EntrantId, digest_of

_NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


def dtype_of(model: PreTrainedModel) -> str:
    """Return the name of the weights' float type, if entrants can have it."""
    name = _NAMES.get(model.dtype)
    if name is None:
        fault = (
            f"the model's weights are {model.dtype}, but must be one of"
            f" {', '.join(_NAMES.values())}; convert them, for example by model.to(torch.float32)"
        )
        raise ConfigurationError([fault])
    return name


def weights_digest(model: PreTrainedModel) -> Digest:
    """Return the digest of every tensor's name, shape, type and bytes."""
    whole = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        whole.update(
            tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        )
    return Digest(whole.hexdigest())


@contextmanager
def in_evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    """Put a model that is being trained in evaluation mode, with default generation settings.

    It computes in the float type of its weights, as its checkpoint does, also in a training with
    mixed precision. Afterwards each module is as before: a trainer may have some in evaluation mode
    already, and peft's generate() writes settings into the model. The training's random state is
    not touched.
    """
    modules = [*model.modules()]
    modes = [module.training for module in modules]
    holders = [
        cast("PreTrainedModel", each) for each in modules if "generation_config" in vars(each)
    ]
    own_settings = [holder.generation_config for holder in holders]
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        model.train(False)
        for holder in holders:
            holder.generation_config = GenerationConfig.from_dict({})
        with torch.random.fork_rng(devices=devices), own_forward(modules), own_float_type():
            yield
    finally:
        for holder, settings in zip(holders, own_settings, strict=True):
            holder.generation_config = settings
        for module, was_training in zip(modules, modes, strict=True):
            module.training = was_training


@contextmanager
def own_forward(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    """Let modules compute without the autocast that accelerate wraps around their `forward`.

    Its `unwrap_model(keep_fp32_wrapper=False)` does so for good: the training would go on without.
    """
    wrapped = {each: vars(each)["forward"] for each in modules if "_original_forward" in vars(each)}
    try:
        for module in wrapped:
            vars(module)["forward"] = vars(module)["_original_forward"]
        yield
    finally:
        for module, forward in wrapped.items():
            vars(module)["forward"] = forward


@contextmanager
def own_float_type() -> Iterator[None]:
    """Switch off the autocast of the code around a call: weights compute in their float type."""
    with ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


class Trainer(Protocol):
    """The interface of a trainer that is used here; transformers' Trainer has it."""

    @property
    def model(self) -> Any:  # noqa: ANN401  # a PreTrainedModel; transformers says less
        """The model in training."""

    @property
    def processing_class(self) -> Any:  # noqa: ANN401  # a tokenizer; transformers says less
        """Its tokenizer."""

    @property
    def state(self) -> Any:  # noqa: ANN401  # transformers' TrainerState
        """The state of the training, of which `global_step` is read."""


@dataclass(frozen=True)
class EvaluatedModel:
    """A model to evaluate: its entrant, how to load it, and how to prepare it."""

    entrant: Entrant  # with a placeholder digest
    named: Callable[[], Entrant]  # with the digest of its present weights
    load: Load
    device: str
    in_evaluation_mode: Callable[[], AbstractContextManager[None]]  # entered while it is evaluated
    where: Callable[[], str] = str  # in a training: the same in all its processes, until a step


def trainer_model(trainer: Trainer, name: str) -> EvaluatedModel:
    """Return a trainer's model, neither copied nor changed; every tensor is read for its digest.

    Raises:
        ConfigurationError: The trainer has no tokenizer, or entrants cannot have the model's float
            type.
    """
    model, tokenizer = _without_ddp(trainer.model), getattr(trainer, "processing_class", None)
    if tokenizer is None:
        fault = (
            "the trainer has no tokenizer; make it with Trainer(..., processing_class=tokenizer)"
        )
        raise ConfigurationError([fault])
    entrant = Entrant(
        entrant_id=EntrantId(name),
        loader="hf",
        weights="",
        weights_digest=digest_of(name),
        max_new_tokens=1,
        dtype=cast("Literal['float32', 'bfloat16', 'float16']", dtype_of(model)),
        sampler=SAMPLER,
    )

    def named() -> Entrant:
        step = trainer.state.global_step
        where = f"in memory, at step {step}"
        return replace(entrant, weights=where, weights_digest=weights_digest(model), step=step)

    loaded = as_loaded(model, tokenizer)
    return EvaluatedModel(
        entrant,
        named,
        lambda _, __: loaded,
        str(model.device),
        lambda: in_evaluation_mode(model),
        lambda: f"step {trainer.state.global_step}, weights {_sampled(model)}",
    )


def _sampled(model: PreTrainedModel) -> str:
    """Return a digest of a few values of each trained tensor; it costs next to nothing."""
    some = [
        parameter.detach().flatten()[:4].float().cpu()
        for parameter in model.parameters()
        if parameter.requires_grad
    ]
    values = torch.cat(some).tolist() if some else []
    return digest_of(repr(values))[:12]  # some may be NaN


def _without_ddp(model: torch.nn.Module) -> PreTrainedModel:
    """Return the model that a wrapper for distributed training holds, or the model itself."""
    is_wrapped = isinstance(model, torch.nn.parallel.DistributedDataParallel)
    return cast("PreTrainedModel", model.module if is_wrapped else model)


def checkpoint_model(folder: Path, name: str, generation: GenerationSection) -> EvaluatedModel:
    """Return the model of a checkpoint: weights, or an adapter that names its base weights."""
    entrant = read_checkpoint(folder, name, generation)
    load = lru_cache(maxsize=1)(load_entrant)  # once for all calls
    return EvaluatedModel(entrant, lambda: entrant, load, generation.device, own_float_type)
