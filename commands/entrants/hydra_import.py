"""Use case: convert a Hydra's shards, whatever their layout, to folders of peft.

All of them are read and compared with the weights before any is written.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from commands.entrants.shards import (
    FINAL,
    MANIFEST,
    Manifest,
    Training,
    checkpoints_of,
    n_heads_of,
    shards_of,
    training_of,
    uncertainty_of,
)
from commands.entrants.weights import head_layers, n_layers_of, require_tensors_fit
from commands.errors import ConfigurationError, WeightsError, counted
from ledger.storage.files import write_files


class PeftFolder(NamedTuple):
    """A peft adapter in memory."""

    rank: int
    alpha: int  # lora_alpha; alpha / rank is the scale of the merge
    depth: int  # layers of the head: the last ones of the weights
    shapes: Mapping[str, tuple[int, ...]]  # of its tensors
    files: Mapping[str, bytes]  # by name


ToPeft: TypeAlias = Callable[[Path, int, str], PeftFolder]
"""Reads a head's shard, given the number of layers of the weights and their name."""


class ShardSets(NamedTuple):
    """The folder of each set of shards; None: there is no such set."""

    security: Path | None = None
    robustness: Path | None = None
    uncertainty: Path | None = None

    @property
    def of_heads(self) -> dict[str, Path]:
        """The sets that have a shard for each head, by name."""
        named = {"security": self.security, "robustness": self.robustness}
        return {name: folder for name, folder in named.items() if folder is not None}


class ImportedAdapter(NamedTuple):
    """A shard and the folder that it was converted to."""

    source: Path
    name: str
    folder: PeftFolder


def import_hydra(
    weights: Path, out: Path, sets: ShardSets, to_peft: ToPeft
) -> list[ImportedAdapter]:
    """Write every checkpoint of each set of shards as folders of peft, with a manifest.

    Args:
        weights: The folder of the weights that the shards were trained on.
        out: The folder to write; it must not exist.
        sets: Where the shards are.
        to_peft: Reads a shard.

    Raises:
        ConfigurationError: No set is named.
        WeightsError: A shard is missing, is unreadable, or does not fit the weights, its manifest
            or the others; nothing is written.
        FolderTaken: `out` exists.
        CannotWrite: `out` cannot be written; nothing is left behind.
    """
    if not any(sets):
        raise ConfigurationError([f"nothing to import: name one of {', '.join(sets._fields)}"])
    n_layers = n_layers_of(weights)
    n_heads = next(map(n_heads_of, sets.of_heads.values()), 0)
    imported: list[ImportedAdapter] = []
    for name, path, set_of in _shards(sets, n_heads):
        folder = to_peft(path, n_layers, str(weights))
        head_layers(weights, folder.depth)
        require_tensors_fit(weights, path, folder.shapes)
        _require_as_said(path, folder, set_of / MANIFEST, training_of(set_of))
        imported.append(ImportedAdapter(path, name, folder))
        _require_equal_depth(imported[0], imported[-1])
    files = {
        f"{adapter.name}/{name}": content
        for adapter in imported
        for name, content in adapter.folder.files.items()
    }
    depth = imported[0].folder.depth
    files |= {f"{name}/{MANIFEST}": _manifest(n_heads, depth) for name in sets.of_heads}
    write_files(out.resolve(), files)
    return imported


def _manifest(n_heads: int, depth: int) -> bytes:
    """Return what a set says of itself, so that a copy that lacks shards is noticed."""
    training = Training(heads_depth=depth, num_shards=n_heads)
    return Manifest(config=training).model_dump_json(exclude_none=True).encode()


def _shards(sets: ShardSets, n_heads: int) -> Iterator[tuple[str, Path, Path]]:
    """Yield the name of each shard, its place, and the folder of its set."""
    for name, folder in sets.of_heads.items():
        for checkpoint in checkpoints_of(folder):
            place = name if checkpoint == FINAL else f"{name}/step_{checkpoint}"
            for head, path in enumerate(shards_of(folder, n_heads, checkpoint)):
                yield f"{place}/shard_{head}", path, folder
    if sets.uncertainty is not None:
        yield "uncertainty", uncertainty_of(sets.uncertainty), sets.uncertainty


def _require_equal_depth(first: ImportedAdapter, other: ImportedAdapter) -> None:
    """Require heads of as many layers as those of the first shard."""
    if other.folder.depth != first.folder.depth:
        why = f"its head has {counted(other.folder.depth, 'layer')}, and that of"
        raise WeightsError(
            other.source,
            f"{why} {first.source} has {first.folder.depth}",
            "import shards of one training",
        )


def _require_as_said(path: Path, folder: PeftFolder, manifest: Path, said: Training) -> None:
    """Require what the manifest says; a `.pt` file does not hold its alpha."""
    if said.heads_depth not in {None, folder.depth}:
        has = f"its head has {counted(folder.depth, 'layer')}"
        why = f"{has}, and {manifest} says heads_depth {said.heads_depth}"
        raise WeightsError(path, why, "put the manifest and the shards of one training there")
    if said.lora_r not in {None, folder.rank}:
        why = f"its rank is {folder.rank}, and {manifest} says lora_r {said.lora_r}"
        raise WeightsError(path, why, "put the manifest and the shards of one training there")
    if said.lora_alpha not in {None, folder.alpha}:
        why = (
            f"it would be merged with lora_alpha {folder.alpha} at rank {folder.rank},"
            f" and {manifest} says lora_alpha {said.lora_alpha}"
        )
        raise WeightsError(path, why, "import a folder of peft that has its own lora_alpha")
