"""Read LoRA adapters, check that they fit, and merge them into weights with peft.

peft only warns of missing tensors and ignores those that fit nowhere, so the tensors are compared
with what peft expects before they are loaded, and peft's warnings are errors here.
"""

import copy
import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import peft
import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import AuxiliaryTrainingWrapper
from peft.utils.transformers_weight_conversion import (
    convert_peft_adapter_state_dict_for_transformers,
)
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from transformers import PreTrainedModel

from commands.backends.remote.bodies import first_line
from commands.errors import WeightsError, shortened

Shapes = Mapping[str, tuple[int, ...]]

_SMALL = 256  # as a rank
_OF_PEFT = (
    *(ValueError, TypeError, KeyError, AttributeError, RuntimeError),
    *(OSError, SafetensorError, UserWarning),
)
ADAPTER = "default"  # peft's name for an adapter that has no other
OLD_NAME = "`is_gradient_checkpointing`"  # peft 0.21 still asks transformers 5.23 by that name
# peft 0.21 looks among the modules alone for what it says of the experts' stacked weights
TIED = "Model has `tie_word_embeddings=True`"  # see `untie`
OF_EXPERTS = "The following (rank|alpha)_pattern keys did not match any targeted module"

OF_AN_MLP = re.compile(
    r"base_model\.model\.model\.layers\.(?P<layer>[0-9]+)\.mlp\.(?:gate|up|down)_proj"
    r"\.lora_[AB]\.weight"
)


class Lora(NamedTuple):
    """A LoRA adapter in memory."""

    source: Path  # the folder or file that it was read from
    settings: peft.LoraConfig
    tensors: Mapping[str, torch.Tensor]  # by peft's names, without the adapter's name


def merge_lora(model: PreTrainedModel, lora: Lora) -> PreTrainedModel:
    """Return the model with W + scale * B @ A in place of each adapted W.

    These are the steps of PeftModel.from_pretrained, with the check between the second and third.
    The model passed in must not be used afterwards.

    Raises:
        WeightsError: Any part of the adapter does not fit this model.
    """
    _require_rank(lora)
    with translate_peft_errors(lora.source):
        settings = copy.deepcopy(lora.settings)  # peft completes them for the model at hand
        adapted = peft.PeftModel(model, settings, ADAPTER)
        check_fit(adapted, settings, lora)
        peft.set_peft_model_state_dict(adapted, dict(lora.tensors), ADAPTER)
        untie(cast("PreTrainedModel", adapted.get_base_model()))
        merged = adapted.merge_and_unload(safe_merge=True)
    return cast("PreTrainedModel", merged)


def untie(model: PreTrainedModel) -> None:
    """Give embeddings and output layer weights of their own if an adapter changes one of them.

    peft adds a change to one without the other. Merged into a tensor that both share, it would
    change both: another model than the one that was trained.
    """
    ends = (model.get_input_embeddings(), model.get_output_embeddings())  # type: ignore[no-untyped-call]  # theirs
    bare = [_within(each) for each in ends]
    is_adapted = any(one is not each for one, each in zip(bare, ends, strict=True))
    if is_adapted and bare[0].weight is bare[1].weight:
        bare[1].weight = torch.nn.Parameter(bare[1].weight.detach().clone())
        model.config.tie_word_embeddings = False


def _within(module: Any) -> Any:  # noqa: ANN401  # a module, or what peft puts in its place
    """Return the module that peft wraps, or the module itself."""
    if isinstance(module, AuxiliaryTrainingWrapper):
        return _within(module.original_module)
    return module.get_base_layer() if isinstance(module, BaseTunerLayer) else module


def _require_rank(lora: Lora) -> None:
    """Require that no rank is larger than all tensors, before peft makes room for it.

    Raises:
        WeightsError: One is.
    """
    largest = max((n for shape in shapes(lora.tensors).values() for n in shape), default=0)
    ranks = [lora.settings.r, *(lora.settings.rank_pattern or {}).values()]
    too_large = [rank for rank in ranks if isinstance(rank, int) and rank > max(largest, _SMALL)]
    if too_large:
        why = (
            f"its rank is {too_large[0]:,}, but its largest tensor has {largest:,} rows or columns"
        )
        raise WeightsError(lora.source, why, "correct r in its adapter_config.json")


def require_finite(lora: Lora) -> None:
    """Require that no tensor of an adapter has a NaN or an infinity, as a failed training leaves.

    Raises:
        WeightsError: One has.
    """
    broken = [key for key, each in sorted(lora.tensors.items()) if not each.isfinite().all()]
    if broken:
        why = f"these tensors are not finite: {shortened(broken)}"
        raise WeightsError(lora.source, why, "use an earlier checkpoint of its training")


def check_fit(adapted: peft.PeftModel, settings: peft.LoraConfig, lora: Lora) -> None:
    """Compare an adapter's tensors with what the model expects of it.

    peft stacks the tensors of single experts where transformers stacks the experts' weights, so
    they are compared as peft will load them.

    Raises:
        WeightsError: A module asked for is not in the model, or a tensor is missing, of another
            shape, or for no module.
    """
    stacked = convert_peft_adapter_state_dict_for_transformers(
        adapted, settings, dict(lora.tensors), ADAPTER
    )
    found, state = shapes(stacked), adapted.state_dict()
    expected = shapes(
        peft.get_peft_model_state_dict(adapted, adapter_name=ADAPTER, save_embedding_layers=False)
    )
    # an adapter may include trained embeddings
    whole = shapes({key: each for key, each in state.items() if f".{ADAPTER}." not in key})
    loadable = {**whole, **expected}
    of_another_shape = {
        key: (found[key], loadable[key])
        for key in sorted(found.keys() & loadable.keys())
        if found[key] != loadable[key]
    }
    _require_vocabulary(adapted, of_another_shape, lora.source)
    faults = [
        *(f"no module {target!r} in the weights" for target in unmatched(settings, expected)),
        *(f"missing {key}" for key in sorted(expected.keys() - found.keys())),
        *(f"for no module: {key}" for key in sorted(found.keys() - loadable.keys())),
        *(
            f"{key} is {list(there)}, expected {list(here)}"
            for key, (there, here) in of_another_shape.items()
        ),
    ]
    if faults:
        remedy = "use the weights that the adapter was trained on, or save the adapter again"
        raise WeightsError(lora.source, f"the adapter does not fit: {shortened(faults)}", remedy)


def _require_vocabulary(
    adapted: peft.PeftModel,
    of_another_shape: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
    source: Path,
) -> None:
    """Require that an adapter was not trained with a vocabulary of another size."""
    base = cast("PreTrainedModel", adapted.get_base_model())
    n_tokens = _within(base.get_input_embeddings()).weight.shape[0]
    for there, here in of_another_shape.values():
        for n_there, n_here in zip(there, here, strict=False):
            if n_there != n_here == n_tokens:
                why = (
                    f"it was trained with a vocabulary of {n_there:,} tokens,"
                    f" and these weights have {n_tokens:,}"
                )
                remedy = (
                    "resize the vocabulary of the weights as its training did"
                    " (resize_token_embeddings), save them, and name that folder"
                )
                raise WeightsError(source, why, remedy)


def require_head_lora(lora: Lora, layers: range) -> None:
    """Check that LoRA changes the MLPs of a head's layers and nothing else.

    Raises:
        WeightsError: It changes other layers or modules, or has whole weights.
    """
    matches = {key: OF_AN_MLP.fullmatch(key) for key in lora.tensors}
    others = [key for key, at in matches.items() if at is None or int(at["layer"]) not in layers]
    if others:
        here = f"the MLPs of layers {layers.start} to {layers.stop - 1}"
        why = f"LoRA for another layer or module than {here}: {shortened(sorted(others))}"
        remedy = "use shards of those MLPs alone, and the weights that they were trained on"
        raise WeightsError(lora.source, why, remedy)


def unmatched(settings: peft.LoraConfig, expected: Shapes) -> list[str]:
    """Return the modules and layers that the settings ask for and the model does not have."""
    targets, excluded = settings.target_modules, settings.exclude_modules
    names = [] if targets is None or isinstance(targets, str) else sorted(targets)
    if excluded:  # peft lists all layers of "all-linear", those that it left out, too
        names = [name for name in names if not _is_excluded(name, excluded)]
    layers = settings.layers_to_transform
    numbers = [] if layers is None else [layers] if isinstance(layers, int) else layers
    return [
        *(name for name in names if not any(f".{name}.lora_" in key for key in expected)),
        *(f"layer {n}" for n in numbers if not any(f".{n}." in key for key in expected)),
    ]


def _is_excluded(name: str, excluded: Collection[str] | str) -> bool:
    """Return whether the settings leave a module out, by a pattern or by endings of its name."""
    if isinstance(excluded, str):
        return re.fullmatch(excluded, name) is not None
    return any(name == each or name.endswith(f".{each}") for each in excluded)


def shapes(tensors: Mapping[str, torch.Tensor]) -> Shapes:
    """Return the shape of each tensor."""
    return {key: tuple(tensor.shape) for key, tensor in tensors.items()}


@contextmanager
def translate_peft_errors(source: Path) -> Iterator[None]:
    """Translate peft's errors and warnings into a WeightsError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", category=UserWarning)
            warnings.filterwarnings("ignore", OLD_NAME, category=FutureWarning)
            warnings.filterwarnings("ignore", OF_EXPERTS, category=RuntimeWarning)
            warnings.filterwarnings("ignore", TIED, category=UserWarning)
            yield
    except _OF_PEFT as error:
        remedy = "use the weights that the adapter was trained on, or upgrade peft"
        raise WeightsError(
            source, f"peft cannot merge the adapter: {first_line(error)}", remedy
        ) from error


SETTINGS, TENSORS = "adapter_config.json", "adapter_model.safetensors"


def read_lora(folder: Path) -> Lora:
    """Read an adapter's folder.

    Raises:
        WeightsError: The folder or a file in it is missing or unreadable; or it is not LoRA, or
            adds layers.
    """
    if not folder.is_dir():
        raise WeightsError(folder, "there is no such adapter folder", "correct the path")
    for name in (SETTINGS, TENSORS):
        if not (folder / name).is_file():
            remedy = "name a folder written by peft's save_pretrained, which writes that file"
            raise WeightsError(folder, f"{name} is missing", remedy)
    with translate_peft_errors(folder):
        settings = peft.PeftConfig.from_pretrained(str(folder))
        tensors = load_file(folder / TENSORS)
    if not isinstance(settings, peft.LoraConfig) or settings.peft_type != peft.PeftType.LORA:
        why = f"the adapter is of type {settings.peft_type!r}, only LORA can be merged"
        raise WeightsError(folder, why, "train a LoRA adapter or merge this one into the weights")
    if settings.layer_replication:
        remedy = "merge it where it was trained, and name the weights that come of it"
        raise WeightsError(folder, "the adapter repeats layers (layer_replication)", remedy)
    return Lora(folder, settings, tensors)


def peft_files(lora: Lora, weights: str) -> Mapping[str, bytes]:
    """Return an adapter's folder as files by name, the same bytes whenever it is written."""
    settings = lora.settings.to_dict()  # type: ignore[no-untyped-call]  # theirs
    settings["base_model_name_or_path"] = weights
    written = json.dumps(settings, indent=2, sort_keys=True, default=sorted)  # sets become lists
    tensors = {
        key: tensor.clone(memory_format=torch.contiguous_format)
        for key, tensor in lora.tensors.items()
    }
    return {
        SETTINGS: f"{written}\n".encode(),
        TENSORS: save(tensors, metadata={"format": "pt"}),
    }
