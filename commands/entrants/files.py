"""Make an entrant from its settings or a checkpoint: find and digest its files, see that they fit.

It needs no torch. Weights and adapters are folders here, or names on the Hub.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType
from pydantic import JsonValue

from commands.entrants.shards import n_heads_of, shards_of, training_of, uncertainty_of
from commands.entrants.weights import (
    FetchSnapshot,
    find_weights,
    folder_digest,
    head_depth,
    head_layers,
    n_layers_of,
    places_of_base,
    require_head_fit,
    require_same_family,
    require_tensors_fit,
    tensor_shapes,
    tensor_types,
    training_step,
)
from commands.errors import WeightsError
from commands.settings.schema import GenerationSection
from commands.settings.sections import EndpointSection, HfSection, HydraSection
from ledger.events.registration import SAMPLER, Adapter, Entrant, EntrantOptions, Hydra
from ledger.identity import EntrantId, canonical_json, digest_of


def read_entrant(
    section: HfSection | HydraSection | EndpointSection,
    generation: GenerationSection,
    folder: Path,
    fetch: FetchSnapshot | None = None,
) -> Entrant:
    """Return an entrant, with the digests of the files that its settings name.

    What the section leaves out is as `generation` says; relative paths start from the folder.
    `fetch` resolves names on the Hub; without it only folders on this machine are found.

    Raises:
        WeightsError: A file is missing or unreadable, or does not fit the weights.
    """
    max_new_tokens = section.max_new_tokens or generation.max_new_tokens
    if section.loader == "endpoint":
        return _endpoint_entrant(section, max_new_tokens)
    place = find_weights(section.weights, folder, fetch)
    base, weights_digest = place.folder, folder_digest(place.folder)
    names = section.adapters if section.loader == "hf" else ()
    places = [find_weights(name, folder, fetch) for name in names]
    last = [place, *places][-1]
    return Entrant(
        entrant_id=EntrantId(section.id),
        loader=section.loader,
        weights=str(base),
        weights_digest=weights_digest,
        adapters=tuple(_adapter(weights.folder, base) for weights in places),
        temperature=section.temperature,
        max_new_tokens=max_new_tokens,
        dtype=generation.dtype,
        hydra=_hydra(section, base, folder) if section.loader == "hydra" else None,
        revision=place.commit,
        step=training_step(last.folder, last.label),
        options=UNSET if section.loader == "hydra" else _options(section),
        sampler=SAMPLER,
    )


def _endpoint_entrant(section: EndpointSection, max_new_tokens: int) -> Entrant:
    """Digest the settings in place of the weights; no request is sent."""
    return Entrant(
        entrant_id=EntrantId(section.id),
        loader=section.loader,
        weights=section.model,
        weights_digest=digest_of([section.loader, section.model, section.revision]),
        temperature=section.temperature,
        max_new_tokens=max_new_tokens,
        dtype=None,
        revision=section.revision,
        options=_options(section),
    )


def _options(section: HfSection | EndpointSection) -> EntrantOptions | UnsetType:
    """Return the settings that make an entrant another one where they are set."""
    body = section.extra_body if section.loader == "endpoint" else {}
    return EntrantOptions(
        system=section.system,
        template=section.template,
        template_arguments=_as_json(section.template_arguments),
        prompt_format=section.prompt_format,
        stop=section.stop,
        top_p=section.top_p,
        top_k=section.top_k,
        min_p=section.min_p,
        repetition_penalty=section.repetition_penalty,
        extra_body=_as_json(body),
    ).stored


def _as_json(table: Mapping[str, JsonValue]) -> str | None:
    return canonical_json(table).decode() if table else None


def _adapter(path: Path, base: Path) -> Adapter:
    digest = folder_digest(path)
    require_same_family(base, path)
    require_tensors_fit(base, path, tensor_shapes(path))
    return Adapter(path=str(path), digest=digest)


def _hydra(section: HydraSection, base: Path, folder: Path) -> Hydra:
    """Return a Hydra; its depth is as the security shards' manifest says, or by all its tensors."""
    n_layers, sets = n_layers_of(base), _shards(section, folder)
    shapes = (tensor_shapes(path) for path in chain.from_iterable(sets.values()))
    said = training_of((folder / section.security).resolve()).heads_depth
    depth = said or head_depth(chain.from_iterable(shapes), n_layers)
    layers = head_layers(base, depth)
    security, robustness, uncertainty = (
        tuple(_shard(path, name, base, layers) for path in paths) for name, paths in sets.items()
    )
    return Hydra(
        heads_depth=depth,
        security=security,
        robustness=robustness,
        uncertainty=next(iter(uncertainty), None),
        bypass_jury=section.bypass_jury,
        beta=section.beta,
    )


def _shards(section: HydraSection, folder: Path) -> Mapping[str, Sequence[Path]]:
    """Return the shards of each set, in the order of the heads; none of a set that is unused."""
    place = (folder / section.security).resolve()
    n_heads = n_heads_of(place)
    if n_heads == 1:
        why = "it has the shard of one head, and a Hydra has several"
        raise WeightsError(place, why, "name the folder of all shards")
    security = shards_of(place, n_heads)
    robustness: Sequence[Path] = ()
    if section.robustness is not None and section.rob_checkpoint is not None:
        place = (folder / section.robustness).resolve()
        robustness = shards_of(place, n_heads, section.rob_checkpoint)
    uncertainty: Sequence[Path] = ()
    if section.uncertainty is not None and section.needs_uncertainty:
        uncertainty = (uncertainty_of((folder / section.uncertainty).resolve()),)
    return {"security": security, "robustness": robustness, "uncertainty": uncertainty}


def _shard(path: Path, name: str, base: Path, layers: range) -> Adapter:
    if path.is_file():
        command = f"tourney import hydra-weights {base} OUT --{name} DIR"
        remedy = f"run `{command}`, where DIR is the folder of this set, and use OUT/{name} instead"
        raise WeightsError(path, "a shard must be a peft folder, and this is a file", remedy)
    digest = folder_digest(path)
    require_head_fit(base, path, layers)
    return Adapter(path=str(path), digest=digest)


_FloatType: TypeAlias = Literal["float32", "bfloat16", "float16"]
_FLOATS: Final[Mapping[str, _FloatType]] = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


def read_checkpoint(
    checkpoint: Path,
    name: str,
    generation: GenerationSection,
    adapters: Sequence[Path] = (),
    *,
    fetch: FetchSnapshot | None = None,
) -> Entrant:
    """Return the entrant of a checkpoint, in the float type of its weights.

    Args:
        checkpoint: Weights, or an adapter that names its base weights.
        name: Of the entrant.
        generation: How it generates; its `dtype` counts if it is set.
        adapters: More adapters, merged in order.
        fetch: Asks the Hub; None: only folders on this machine are found.

    Raises:
        WeightsError: A file is missing or unreadable, does not fit, or is of another float type.
    """
    named = checkpoint
    own = find_weights(checkpoint, Path(), fetch).folder
    config = own / "adapter_config.json"
    if config.exists():
        named = base_weights(config, fetch)
        adapters = (own, *adapters)
    section = HfSection(id=name, weights=named, adapters=tuple(adapters))
    if "dtype" not in generation.model_fields_set:
        folder = find_weights(named, Path(), fetch).folder
        generation = generation.model_copy(update={"dtype": _float_type(folder)})
    return read_entrant(section, generation, Path(), fetch)


def base_weights(config: Path, fetch: FetchSnapshot | None = None) -> Path:
    """Return the folder of the weights that an adapter's configuration names, or their name.

    A relative path starts where the process runs, as in peft, or else beside the adapter's folder.
    Without such a folder, the Hub may have weights of this name.

    Raises:
        WeightsError: The configuration cannot be read, or there is no such folder.
    """
    remedy = "set it to the folder of the weights that the adapter belongs to"
    try:
        named = Path(str(json.loads(config.read_bytes())["base_model_name_or_path"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = "base_model_name_or_path cannot be read"
        raise WeightsError(config, why, remedy) from error
    for place in places_of_base(config.parent, str(named)):
        return place
    if fetch is not None and find_weights(named, Path(), fetch).commit:
        return named
    raise WeightsError(config, f"base_model_name_or_path is {str(named)!r}, no folder here", remedy)


def _float_type(weights: Path) -> _FloatType:
    """Return the float type of most of the weights' tensors."""
    counted = Counter(each for each in tensor_types(weights) if each.startswith(("F", "BF")))
    stored = next((name for name, _ in counted.most_common(1)), "F32")
    if stored not in _FLOATS:
        why = f"its tensors are {stored}, but must be one of {', '.join(_FLOATS)}"
        raise WeightsError(weights, why, "convert them, or set dtype")
    return _FLOATS[stored]
