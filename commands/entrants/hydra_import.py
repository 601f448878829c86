"""Use case: convert a Hydra's shards, whatever their layout, to folders of peft.

All of them are read and compared with the weights before any is written.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from pydantic import BaseModel, PositiveInt, ValidationError

from commands.entrants.shards import FINAL, checkpoints_of, shards_of, uncertainty_of
from commands.entrants.weights import head_layers, require_tensors_fit
from commands.errors import ConfigurationError, WeightsError
from ledger.storage.files import write_files

DEFAULT_DEPTH: Final = 3
_MANIFEST: Final = "manifest.json"  # tells how a set was trained, where it is there


class PeftFolder(NamedTuple):
    """A peft adapter in memory."""

    rank: int
    alpha: int  # lora_alpha; alpha / rank is the scale of the merge
    shapes: Mapping[str, tuple[int, ...]]  # of its tensors
    files: Mapping[str, bytes]  # by name


ToPeft: TypeAlias = Callable[[Path, range, str], PeftFolder]
"""Reads a head's shard, given the head's layers and the name of the weights."""


class ShardSets(NamedTuple):
    """The folder of each set of shards; None: there is no such set."""

    security: Path | None = None
    robustness: Path | None = None
    uncertainty: Path | None = None


class ImportedAdapter(NamedTuple):
    """A shard and the folder that it was converted to."""

    source: Path
    name: str
    folder: PeftFolder


def import_hydra(
    weights: Path,
    out: Path,
    sets: ShardSets,
    to_peft: ToPeft,
    *,
    n_heads: int,
    heads_depth: int | None = None,
) -> list[ImportedAdapter]:
    """Write every checkpoint of each set of shards as folders of peft.

    Args:
        weights: The folder of the weights that the shards were trained on.
        out: The folder to write; it must not exist.
        sets: Where the shards are.
        to_peft: Reads a shard.
        n_heads: How many shards a set has; the uncertainty set has one.
        heads_depth: How many layers a head has; None: as the security manifest says.

    Raises:
        ConfigurationError: No set is named.
        WeightsError: A shard is missing, is unreadable, or fits neither the weights nor its
            manifest; nothing is written.
        FolderTaken: `out` exists.
        CannotWrite: `out` cannot be written; nothing is left behind.
    """
    if not any(sets):
        raise ConfigurationError([f"nothing to import: name one of {', '.join(sets._fields)}"])
    depth = heads_depth or _training_of(sets.security).heads_depth or DEFAULT_DEPTH
    layers = head_layers(weights, depth)
    imported = []
    for name, path, set_of in _shards(sets, n_heads):
        folder = to_peft(path, layers, str(weights))
        require_tensors_fit(weights, path, folder.shapes)
        _require_as_said(path, folder, set_of / _MANIFEST, _training_of(set_of))
        imported.append(ImportedAdapter(path, name, folder))
    files = {
        f"{adapter.name}/{name}": content
        for adapter in imported
        for name, content in adapter.folder.files.items()
    }
    write_files(out.resolve(), files)
    return imported


class _Training(BaseModel):
    """How a set was trained, by its manifest; None: it does not say."""

    lora_r: PositiveInt | None = None
    lora_alpha: PositiveInt | None = None
    heads_depth: PositiveInt | None = None


class _Manifest(BaseModel):
    config: _Training = _Training()


def _shards(sets: ShardSets, n_heads: int) -> Iterator[tuple[str, Path, Path]]:
    """Yield the name of each shard, its place, and the folder of its set."""
    for name, folder in (("security", sets.security), ("robustness", sets.robustness)):
        if folder is not None:
            for checkpoint in checkpoints_of(folder):
                place = name if checkpoint == FINAL else f"{name}/step_{checkpoint}"
                for head, path in enumerate(shards_of(folder, n_heads, checkpoint)):
                    yield f"{place}/shard_{head}", path, folder
    if sets.uncertainty is not None:
        yield "uncertainty", uncertainty_of(sets.uncertainty), sets.uncertainty


def _require_as_said(path: Path, folder: PeftFolder, manifest: Path, said: _Training) -> None:
    """Require the rank and the alpha of the manifest; a `.pt` file does not hold its alpha."""
    if said.lora_r not in {None, folder.rank}:
        why = f"its rank is {folder.rank}, and {manifest} says lora_r {said.lora_r}"
        raise WeightsError(path, why, "put the manifest and the shards of one training there")
    if said.lora_alpha not in {None, folder.alpha}:
        why = (
            f"it would be merged with lora_alpha {folder.alpha} at rank {folder.rank},"
            f" and {manifest} says lora_alpha {said.lora_alpha}"
        )
        raise WeightsError(path, why, "import a folder of peft that has its own lora_alpha")


def _training_of(folder: Path | None) -> _Training:
    if folder is None or not (folder / _MANIFEST).is_file():
        return _Training()
    file = folder / _MANIFEST
    try:
        return _Manifest.model_validate_json(file.read_bytes()).config
    except (OSError, ValidationError) as error:
        why = "lora_r, lora_alpha and heads_depth under config are not all whole numbers from 1"
        raise WeightsError(file, why, "correct or remove it") from error
