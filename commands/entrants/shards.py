"""Find the LoRA shards of a Hydra's heads in a folder.

A set of shards has one of three layouts:

    shard_0/adapter_config.json, and step_50/shard_0/... at an earlier step    folders of peft
    shard_0_lora.pt                                                            published files
    shard_0/RUN/checkpoints/checkpoint_step_50.pt, checkpoint_final.pt         training checkpoints

Entrants need folders of peft; `tourney import hydra-weights` converts the other two. A training may
keep a checkpoint twice, whole and `_slim`: both hold the same LoRA tensors, and the slim file is
read. A `manifest.json` beside the shards may say how many there are, and how they were trained.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, PositiveInt, ValidationError

from commands.errors import MOST_NAMES, WeightsError

FINAL: Final = -1
"""The checkpoint at the end of training; others are named by their step."""

MANIFEST: Final = "manifest.json"
_SETTINGS: Final = "adapter_config.json"  # makes a folder a peft adapter
_LAYOUTS: Final[Mapping[str, str]] = {
    "shard_*/adapter_config.json": r"(?P<source>shard_(?P<head>[0-9]+))/adapter_config\.json",
    "step_*/shard_*/adapter_config.json": (
        r"step_(?P<step>[0-9]+)/(?P<source>shard_(?P<head>[0-9]+))/adapter_config\.json"
    ),
    "shard_*_lora.pt": r"(?P<source>shard_(?P<head>[0-9]+)_lora\.pt)",
    "shard_*/*/checkpoints/checkpoint_*.pt": (
        r"(?P<source>shard_(?P<head>[0-9]+)/[^/]+)/checkpoints/"
        r"checkpoint_(?:final|step_(?P<step>[0-9]+))(?:_slim)?\.pt"
    ),
}
"""Glob of the files to look at, and the pattern of those that are shards."""


class _ShardFile(NamedTuple):
    head: int
    checkpoint: int
    source: str  # the training that it is from
    path: Path


class Training(BaseModel):
    """How a set of shards was trained, by its manifest; None: it does not say."""

    lora_r: PositiveInt | None = None
    lora_alpha: PositiveInt | None = None
    heads_depth: PositiveInt | None = None
    num_shards: PositiveInt | None = None


class Manifest(BaseModel):
    """The manifest of a set of shards."""

    config: Training = Training()


def training_of(folder: Path) -> Training:
    """Return what the manifest of a set says; nothing if there is none."""
    file = folder / MANIFEST
    if not file.is_file():
        return Training()
    try:
        return Manifest.model_validate_json(file.read_bytes()).config
    except (OSError, ValidationError) as error:
        why = f"{', '.join(Training.model_fields)} under config are not all whole numbers from 1"
        raise WeightsError(file, why, "correct or remove it") from error


def n_heads_of(folder: Path) -> int:
    """Return how many heads a set has shards for: as its manifest says, or by their numbers."""
    heads = (head for shards in _checkpoints(folder).values() for head in shards)
    return training_of(folder).num_shards or 1 + max(heads)


def shards_of(folder: Path, n_heads: int, checkpoint: int = FINAL) -> tuple[Path, ...]:
    """Return the shard of each head, in order, all of one training: a folder or a `.pt` file."""
    checkpoints = _checkpoints(folder)
    if checkpoint not in checkpoints:
        there = ", ".join(map(_name, checkpoints))
        why = f"it has no {_name(checkpoint)}; it has: {there}"
        raise WeightsError(folder, why, "name one of them, or another folder")
    shards, heads = checkpoints[checkpoint], range(n_heads)
    missing = (head for head in heads if head not in shards)
    faults = [
        *(f"shard {head} is missing" for head in islice(missing, MOST_NAMES)),
        *(f"shard {head} is one too many" for head in sorted(shards) if head not in heads),
    ]
    if faults:
        why = f"its {_name(checkpoint)} does not fit {n_heads} heads: {', '.join(faults)}"
        raise WeightsError(folder, why, "put all shards of one training there")
    return tuple(shards[head] for head in heads)


def checkpoints_of(folder: Path) -> tuple[int, ...]:
    """Return the steps that a folder has shards of, in order; FINAL comes last."""
    return tuple(_checkpoints(folder))


def uncertainty_of(path: Path) -> Path:
    """Return the uncertainty head's adapter: itself, or a folder's one `checkpoint_final.pt`."""
    if path.is_file():
        return path
    file = path / "checkpoint_final.pt"
    is_peft, is_pt = (path / _SETTINGS).is_file(), file.is_file()
    if is_peft == is_pt:
        why = f"it holds {'both' if is_pt else 'neither'} of {_SETTINGS} and {file.name}"
        raise WeightsError(path, why, "name a folder of peft, or the file itself")
    return path if is_peft else file


def _checkpoints(folder: Path) -> Mapping[int, Mapping[int, Path]]:
    """Return the shards by checkpoint, the final one last, and head."""
    if not folder.is_dir():
        raise WeightsError(folder, "there is no such folder of shards", "correct its name")
    shards = list(_shards(folder))
    if not shards:
        remedy = f"name one that holds {', '.join(_LAYOUTS)}"
        raise WeightsError(folder, "there are no shards in it", remedy)
    _require_one_training(folder, shards)
    checkpoints: dict[int, dict[int, Path]] = {}
    for shard in sorted(shards, key=lambda shard: (shard.checkpoint == FINAL, shard.checkpoint)):
        checkpoints.setdefault(shard.checkpoint, {})[shard.head] = shard.path
    return checkpoints


def _shards(folder: Path) -> Iterator[_ShardFile]:
    for glob, pattern in _LAYOUTS.items():
        for file in sorted(folder.glob(glob)):  # whole before slim, which so replaces it
            if match := re.fullmatch(pattern, file.relative_to(folder).as_posix()):
                checkpoint = int(match.groupdict().get("step") or FINAL)
                path = file.parent if file.name == _SETTINGS else file
                yield _ShardFile(int(match["head"]), checkpoint, match["source"], path)


def _require_one_training(folder: Path, shards: Iterable[_ShardFile]) -> None:
    sources: dict[int, set[str]] = {}
    for shard in shards:
        sources.setdefault(shard.head, set()).add(shard.source)
    several = [", ".join(sorted(names)) for _, names in sorted(sources.items()) if len(names) > 1]
    if several:
        why = f"it holds several trainings of one head: {'; '.join(several)}"
        raise WeightsError(folder, why, "leave one of them there")


def _name(checkpoint: int) -> str:
    return "final checkpoint" if checkpoint == FINAL else f"step {checkpoint}"
