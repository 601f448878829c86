"""Make an entrant from its settings: find its files, digest them, and check that they fit.

It needs no torch.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET, UnsetType
from pydantic import JsonValue

from commands.entrants import weights
from commands.entrants.folder_or_hub import FetchSnapshot, FoundWeights, find_weights
from commands.entrants.shards import shards_of, uncertainty_of
from commands.errors import WeightsError
from commands.settings.schema import GenerationSection
from commands.settings.sections import EndpointSection, HfSection, HydraSection
from ledger.events.options import EntrantOptions
from ledger.events.registration import SAMPLER, Adapter, Entrant, Hydra
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
    place = find_weights(section.weights, folder, fetch, revision=section.revision)
    base, weights_digest = place.folder, weights.folder_digest(place.folder)
    names = section.adapters if section.loader == "hf" else ()
    places = [_adapter_place(name, folder, fetch) for name in names]
    last = [place, *places][-1]
    return Entrant(
        entrant_id=EntrantId(section.id),
        loader=section.loader,
        weights=str(base),
        weights_digest=weights_digest,
        adapters=tuple(_adapter(each.folder, base) for each in places),
        temperature=section.temperature,
        max_new_tokens=max_new_tokens,
        dtype=generation.dtype,
        hydra=_hydra(section, base, folder) if section.loader == "hydra" else None,
        revision=place.commit,
        step=weights.training_step(last.folder, last.label),
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


def _adapter_place(named: Path, folder: Path, fetch: FetchSnapshot | None) -> FoundWeights:
    """Find an adapter; `org/name@revision` is a branch, tag or commit on the Hub."""
    name, _, revision = named.as_posix().partition("@")
    if (folder / named).exists() or not revision:
        return find_weights(named, folder, fetch)
    return find_weights(Path(name), folder, fetch, revision=revision)


def _adapter(path: Path, base: Path) -> Adapter:
    digest = weights.folder_digest(path)
    weights.require_same_family(base, path)
    weights.require_tensors_fit(base, path, weights.tensor_shapes(path))
    return Adapter(path=str(path), digest=digest)


def _hydra(section: HydraSection, base: Path, folder: Path) -> Hydra:
    """Return a Hydra with the shards of each set, in the order of the heads; none if unused."""
    layers = weights.head_layers(base, section.heads_depth)
    security = shards_of((folder / section.security).resolve(), section.heads)
    robustness: tuple[Path, ...] = ()
    if section.robustness is not None and section.rob_checkpoint is not None:
        place = (folder / section.robustness).resolve()
        robustness = shards_of(place, section.heads, section.rob_checkpoint)
    uncertainty: tuple[Path, ...] = ()
    if section.uncertainty is not None and section.needs_uncertainty:
        uncertainty = (uncertainty_of((folder / section.uncertainty).resolve()),)
    return Hydra(
        heads_depth=section.heads_depth,
        security=tuple(_shard(path, "security", base, layers) for path in security),
        robustness=tuple(_shard(path, "robustness", base, layers) for path in robustness),
        uncertainty=next((_shard(path, "uncertainty", base, layers) for path in uncertainty), None),
        bypass_jury=section.bypass_jury,
        beta=section.beta,
    )


def _shard(path: Path, name: str, base: Path, layers: range) -> Adapter:
    if path.is_file():
        command = f"tourney import hydra-weights {base} OUT --{name} DIR"
        remedy = f"run `{command}`, where DIR is the folder of this set, and use OUT/{name} instead"
        raise WeightsError(path, "a shard must be a peft folder, and this is a file", remedy)
    digest = weights.folder_digest(path)
    weights.require_head_fit(base, path, layers)
    return Adapter(path=str(path), digest=digest)
