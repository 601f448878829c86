"""Shards are imported all together, after all of them were looked at."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.entrants.hydra_import import ImportedAdapter, PeftFolder, ShardSets, import_hydra
from commands.errors import ConfigurationError, WeightsError
from ledger.errors import FolderTaken
from tests.support.builders.commands import Shapes, write_weights

N_HEADS = 2
N_LAYERS = 5
OUT, IN = 6, 4


def up_proj(layer: int) -> str:
    """Return the name of a layer's module."""
    return f"model.layers.{layer}.mlp.up_proj"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Give the headers of an OLMo 2 of five layers."""
    folder = write_weights(
        tmp_path / "weights", {f"{up_proj(n)}.weight": (OUT, IN) for n in range(N_LAYERS)}
    )
    config = {"model_type": "olmo2", "num_hidden_layers": N_LAYERS}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def read(path: Path, n_layers: int, base: str) -> PeftFolder:
    """Stand in for torch: the file's content is its rank and its depth."""
    rank, depth = map(int, path.read_text().split())
    name = f"base_model.model.{up_proj(n_layers - 1)}"
    shapes: Shapes = {
        f"{name}.lora_A.weight": (rank, IN),
        f"{name}.lora_B.weight": (OUT, rank),
    }
    settings = json.dumps([path.name, n_layers - depth, Path(base).name])
    return PeftFolder(rank, 2 * rank, depth, shapes, {"adapter_config.json": settings.encode()})


def published(folder: Path, *, n_shards: int = N_HEADS) -> Path:
    """Write a set of shards as they were published."""
    folder.mkdir()
    for head in range(n_shards):
        (folder / f"shard_{head}_lora.pt").write_text("8 3")
    return folder


def trained(folder: Path, *checkpoints: str) -> Path:
    """Write a set of shards as their training left them."""
    for head in range(N_HEADS):
        run = folder / f"shard_{head}" / "run_1" / "checkpoints"
        run.mkdir(parents=True)
        for checkpoint in checkpoints:
            (run / f"checkpoint_{checkpoint}.pt").write_text("16 3")
    return folder


def says(folder: Path, **config: object) -> Path:
    """Put a manifest beside shards."""
    (folder / "manifest.json").write_text(json.dumps({"config": config, "description": "x"}))
    return folder


@pytest.fixture
def imports(weights: Path, tmp_path: Path) -> Callable[..., list[ImportedAdapter]]:
    """Give a function that imports sets into a folder `out`."""

    def run(**sets: Path) -> list[ImportedAdapter]:
        return import_hydra(weights, tmp_path / "out", ShardSets(**sets), read)

    return run


Imports = Callable[..., list[ImportedAdapter]]


def settings_of(folder: Path) -> dict[str, object]:
    """Read what every folder below says of itself."""
    files = sorted(folder.rglob("adapter_config.json"))
    return {str(f.parent.relative_to(folder)): json.loads(f.read_text()) for f in files}


def test_every_set_and_step_becomes_folders_of_peft(imports: Imports, tmp_path: Path) -> None:
    """The folders are those that a tournament's settings name."""
    uncertainty = tmp_path / "uncertainty"
    uncertainty.mkdir()
    (uncertainty / "checkpoint_final.pt").write_text("16 3")

    imported = imports(
        security=published(tmp_path / "prod"),
        robustness=trained(tmp_path / "robust", "final_slim", "step_50_slim"),
        uncertainty=uncertainty,
    )

    said = settings_of(tmp_path / "out")
    assert said == {
        "security/shard_0": ["shard_0_lora.pt", 2, "weights"],
        "security/shard_1": ["shard_1_lora.pt", 2, "weights"],
        "robustness/shard_0": ["checkpoint_final_slim.pt", 2, "weights"],
        "robustness/shard_1": ["checkpoint_final_slim.pt", 2, "weights"],
        "robustness/step_50/shard_0": ["checkpoint_step_50_slim.pt", 2, "weights"],
        "robustness/step_50/shard_1": ["checkpoint_step_50_slim.pt", 2, "weights"],
        "uncertainty": ["checkpoint_final.pt", 2, "weights"],
    }
    assert {each.name: each.folder.rank for each in imported} == {
        name: 8 if name.startswith("security") else 16 for name in said
    }


def test_a_set_says_how_many_shards_it_has(imports: Imports, tmp_path: Path) -> None:
    """A copy of it that broke off is noticed; the uncertainty head's digest is of its folder."""
    doubt = tmp_path / "checkpoint_final.pt"
    doubt.write_text("16 3")

    imports(security=published(tmp_path / "prod"), uncertainty=doubt)

    (manifest,) = (tmp_path / "out").rglob("manifest.json")
    assert manifest.parent.name == "security"
    assert json.loads(manifest.read_text()) == {"config": {"heads_depth": 3, "num_shards": N_HEADS}}


def test_an_uncertainty_head_may_be_imported_alone(imports: Imports, tmp_path: Path) -> None:
    """It has no shards to count."""
    doubt = tmp_path / "checkpoint_final.pt"
    doubt.write_text("16 3")

    imports(uncertainty=doubt)

    assert [*settings_of(tmp_path / "out")] == ["uncertainty"]


@pytest.mark.parametrize(
    ("of_last", "said", "why"),
    [
        (
            "8 2",
            {},
            r"shard_1_lora\.pt: its head has 2 layers, and that of .*shard_0_lora\.pt has 3",
        ),
        (
            "8 3",
            {"heads_depth": 2},
            r"its head has 3 layers, and .*manifest\.json says heads_depth 2",
        ),
        ("8 3", {"num_shards": 3}, "its final checkpoint does not fit 3 heads: shard 2 is missing"),
    ],
)
def test_shards_of_several_trainings_are_refused(
    imports: Imports, tmp_path: Path, of_last: str, said: dict[str, int], why: str
) -> None:
    """Blocks are numbered within a head, so a wrong depth would be another layer."""
    prod = says(published(tmp_path / "prod"), **said)
    (prod / "shard_1_lora.pt").write_text(of_last)

    with pytest.raises(WeightsError, match=why):
        imports(security=prod)
    assert refused(tmp_path) == []


def test_heads_leave_a_trunk(imports: Imports, tmp_path: Path) -> None:
    """Weights of another size have fewer layers."""
    prod = published(tmp_path / "prod")
    for shard in prod.iterdir():
        shard.write_text(f"8 {N_LAYERS}")

    with pytest.raises(WeightsError, match="heads of depth 5 leave none for the trunk"):
        imports(security=prod)


def refused(folder: Path) -> list[str]:
    """Return what a refused import left behind."""
    return [path.name for path in folder.iterdir() if "out" in path.name]


UNKNOWN = r"manifest\.json: lora_r, lora_alpha, heads_depth, num_shards under config"


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ('{"config": {"lora_r": 4}}', r"its rank is 8, and .*manifest\.json says lora_r 4"),
        (
            '{"config": {"lora_r": 8, "lora_alpha": 8}}',
            r"lora_alpha 16 at rank 8, and .*manifest\.json says lora_alpha 8",
        ),
        *((text, UNKNOWN) for text in ("{", '{"config": {"lora_r": "many"}}', '{"config": []}')),
    ],
)
def test_shards_that_a_manifest_contradicts_or_does_not_tell_of_are_refused(
    imports: Imports, tmp_path: Path, manifest: str, why: str
) -> None:
    """They are of two trainings; at half its scale a head still talks; a default is a guess."""
    prod = published(tmp_path / "prod")
    (prod / "manifest.json").write_text(manifest)

    with pytest.raises(WeightsError, match=why):
        imports(security=prod)
    assert refused(tmp_path) == []


def test_a_shard_that_does_not_fit_the_weights_stops_all(weights: Path, tmp_path: Path) -> None:
    """Eight heads of nine are none."""
    prod = published(tmp_path / "prod")

    def with_a_misfit(path: Path, n_layers: int, base: str) -> PeftFolder:
        folder = read(path, n_layers, base)
        if path.name != "shard_1_lora.pt":
            return folder
        return folder._replace(shapes=dict.fromkeys(folder.shapes, (9, 9)))

    with pytest.raises(WeightsError, match=r"shard_1_lora\.pt: the adapter does not fit .*weights"):
        import_hydra(weights, tmp_path / "out", ShardSets(prod), with_a_misfit)
    assert refused(tmp_path) == []


def test_a_missing_shard_stops_all(imports: Imports, tmp_path: Path) -> None:
    """The other sets are not written without it."""
    robust = published(tmp_path / "robust", n_shards=1)

    with pytest.raises(WeightsError, match="shard 1 is missing"):
        imports(security=published(tmp_path / "prod"), robustness=robust)
    assert refused(tmp_path) == []


def test_a_folder_that_is_there_is_left_alone(imports: Imports, tmp_path: Path) -> None:
    """It may be what a tournament was run on."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()

    with pytest.raises(FolderTaken):
        imports(security=published(tmp_path / "prod"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_nothing_to_import_is_told(imports: Imports) -> None:
    """A forgotten option must not look like success."""
    with pytest.raises(ConfigurationError, match="name one of security, robustness, uncertainty"):
        imports()
