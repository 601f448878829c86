"""Which files of a folder are the shards of a Hydra's heads."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.entrants.shards import FINAL, checkpoints_of, shards_of, uncertainty_of
from commands.errors import WeightsError

PEFT = [f"shard_{head}/adapter_config.json" for head in range(3)]
PUBLISHED = [f"shard_{head}_lora.pt" for head in range(3)]


def training(checkpoint: str, *, run: str = "run_7", n_heads: int = 3) -> list[str]:
    """Return the files that training leaves of one checkpoint."""
    return [f"shard_{n}/{run}/checkpoints/checkpoint_{checkpoint}.pt" for n in range(n_heads)]


def folder_of(place: Path, files: Sequence[str], *more: Sequence[str]) -> Path:
    """Write files, each of which says its own name."""
    for name in (*files, *(each for group in more for each in group)):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name, encoding="utf-8")
    return place


def names(place: Path, shards: Sequence[Path]) -> list[str]:
    """Return shards by their names in the folder."""
    return [shard.relative_to(place).as_posix() for shard in shards]


SLIM = [*training("final_slim"), *training("final"), *training("step_50_slim")]
RUNS = [*training("final"), *training("step_50"), *training("best")]
OTHERS = ["manifest.json", "shard_0_lora.pt.sha256", "shard_x_lora.pt"]
TWELVE = [f"shard_{head}_lora.pt" for head in range(12)]
FOLDERS = [f"shard_{head}" for head in range(3)]


@pytest.mark.parametrize(
    ("files", "checkpoint", "shards"),
    [
        ([*PEFT, *(f"step_50/{name}" for name in PEFT)], FINAL, FOLDERS),
        ([*PEFT, *(f"step_50/{name}" for name in PEFT)], 50, [f"step_50/{n}" for n in FOLDERS]),
        ([*PUBLISHED, *OTHERS], FINAL, PUBLISHED),
        (RUNS, FINAL, training("final")),
        (RUNS, 50, training("step_50")),
        (SLIM, FINAL, training("final_slim")),
        (SLIM, 50, training("step_50_slim")),
        (TWELVE, FINAL, TWELVE),
    ],
)
def test_shards_are_found_as_peft_a_publisher_or_a_training_left_them(
    tmp_path: Path, files: list[str], checkpoint: int, shards: list[str]
) -> None:
    """In the order of their heads: as text, shard_10 comes before shard_2.

    A shard of peft is its folder. A slim checkpoint has the same LoRA tensors as the whole, without
    the optimizer's state, which is ten times as large.
    """
    folder_of(tmp_path, files)

    assert names(tmp_path, shards_of(tmp_path, len(shards), checkpoint)) == shards


def test_the_checkpoints_there_are_can_be_listed(tmp_path: Path) -> None:
    """In the order of training: 100 comes after 50, and the final one is last."""
    folder_of(tmp_path, training("final"), training("step_100"), training("step_50"))

    assert checkpoints_of(tmp_path) == (50, 100, FINAL)


@pytest.mark.parametrize(
    ("files", "checkpoint", "fault"),
    [
        ([], FINAL, r"there are no shards in it; name one that holds shard_\*/adapter_config"),
        (PEFT[:1] + PEFT[2:], FINAL, "final checkpoint does not fit 3 heads: shard 1 is missing;"),
        (PEFT[:1], FINAL, "3 heads: shard 1 is missing, shard 2 is missing; put all shards"),
        (
            [*PUBLISHED, "shard_3_lora.pt"],
            FINAL,
            "3 heads: shard 3 is one too many; put all",
        ),
        (training("step_50", n_heads=2), 50, "its step 50 does not fit 3 heads: shard 2 is"),
        (PUBLISHED, 50, "it has no step 50; it has: final checkpoint; name"),
        (
            [*training("step_100"), *training("step_50"), *training("final")],
            75,
            "it has no step 75; it has: step 50, step 100, final checkpoint;",
        ),
        (training("step_50"), FINAL, "it has no final checkpoint; it has: ste"),
    ],
)
def test_a_set_that_is_not_whole_is_refused(
    tmp_path: Path, files: list[str], checkpoint: int, fault: str
) -> None:
    """Eight heads instead of nine, or another step, would be another entrant under this name."""
    folder_of(tmp_path, files)

    with pytest.raises(WeightsError, match=fault):
        shards_of(tmp_path, 3, checkpoint)


def test_of_many_missing_shards_the_first_are_listed(tmp_path: Path) -> None:
    """Their number is read from a manifest, or from a file's name."""
    folder_of(tmp_path, PEFT[:1])

    with pytest.raises(WeightsError, match=r"fit 1000000000 heads: .* shard 6 is missing; put all"):
        shards_of(tmp_path, 1_000_000_000)


@pytest.mark.parametrize(
    ("more", "listed"),
    [
        (training("final", run="run_8"), "shard_0/run_7, shard_0/run_8; shard_1/run_7, shard_1/"),
        (training("step_50", run="run_8"), "shard_0/run_7, shard_0/run_8; shard_1/run_7, shard_1/"),
        (PUBLISHED[:1], "shard_0/run_7, shard_0_lora.pt; leave one of them there"),
        (PEFT[1:2], "shard_1, shard_1/run_7; leave one of them there"),
    ],
    ids=["two_runs", "another_step_of_another_run", "published", "peft"],
)
def test_nobody_guesses_which_of_two_trainings_is_meant(
    tmp_path: Path, more: list[str], listed: str
) -> None:
    """The first that a file system happens to name is another one on another machine."""
    folder_of(tmp_path, training("final"), more)

    with pytest.raises(WeightsError, match=f"it holds several trainings of one head: {listed}"):
        shards_of(tmp_path, 3)


def test_the_uncertainty_heads_adapter_is_found_or_named(tmp_path: Path) -> None:
    """A folder of peft, a folder of the file that training ends with, or that file."""
    peft = folder_of(tmp_path / "peft", ["adapter_config.json"])
    trained = folder_of(tmp_path / "trained", ["checkpoint_final.pt", "manifest.json"])

    assert uncertainty_of(peft) == peft
    assert uncertainty_of(trained) == trained / "checkpoint_final.pt"
    assert uncertainty_of(trained / "checkpoint_final.pt") == trained / "checkpoint_final.pt"


@pytest.mark.parametrize(
    ("files", "quantity"),
    [([], "neither"), (["adapter_config.json", "checkpoint_final.pt"], "both")],
)
def test_an_uncertain_uncertainty_head_is_refused(
    tmp_path: Path, files: list[str], quantity: str
) -> None:
    """Its answers would be believed, whoever gave them."""
    folder_of(tmp_path, files)

    with pytest.raises(WeightsError, match=f"it holds {quantity} of adapter_config.json and che"):
        uncertainty_of(tmp_path)
