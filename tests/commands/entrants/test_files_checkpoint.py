"""Entrants of checkpoints: where an adapter's base lies, and of which float type weights are."""

import json
from pathlib import Path
from typing import Literal

import pytest

from commands.entrants.files import base_weights, read_checkpoint
from commands.entrants.folder_or_hub import HubSnapshot
from commands.errors import WeightsError
from commands.settings.schema import GenerationSection
from tests.support.weights.headers import write_headers, write_shapes


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the working folder, with a base at out/base."""
    weights(tmp_path / "out" / "base")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def weights(folder: Path, *types: str) -> None:
    """Write a folder of weights, whose tensors have these types."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    write_headers(folder / "model.safetensors", types or ("F32",))


def adapter_config(folder: Path, base: object) -> Path:
    """Write an adapter's configuration that names its base."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "adapter_config.json"
    file.write_text(json.dumps({"base_model_name_or_path": base}), encoding="utf-8")
    return file


@pytest.mark.parametrize("base", ["out/base", "base", "../base"])
def test_the_base_of_an_adapter_is_found_from_here_or_beside_it(here: Path, base: str) -> None:
    """Peft writes the path as the training said it, and trainings are moved."""
    config = adapter_config(Path("out/adapter"), base)

    assert base_weights(config).resolve() == here / "out" / "base"


def test_an_absolute_base_is_where_it_is(here: Path) -> None:
    """Wherever the adapter lies."""
    config = adapter_config(here / "far" / "away", str(here / "out" / "base"))

    assert base_weights(config) == here / "out" / "base"


LORA = {
    "base_model.model.q.lora_A.weight": (2, 4),
    "base_model.model.q.lora_B.weight": (4, 2),
}


@pytest.mark.parametrize(
    ("checkpoint", "revision", "commit"),
    [("org/base", "v1", "v1"), ("org/adapter", "v2", "main"), ("org/here", None, None)],
)
def test_weights_and_bases_may_be_names_on_the_hub(
    here: Path, checkpoint: str, revision: str | None, commit: str | None
) -> None:
    """As of a tournament's entrants; most adapters name their base so."""
    weights(here / "hub" / "base")
    for base in ("hub/base", "out/base"):
        write_shapes(here / base / "model.safetensors", {"q.weight": (4, 4)})
    for adapter, named in (("adapter", "org/base"), ("here", "out/base")):
        adapter_config(here / "hub" / adapter, named)
        write_shapes(here / "hub" / adapter / "adapter_model.safetensors", LORA)

    def fetch(name: str, revision: str | None) -> HubSnapshot:
        return HubSnapshot(here / "hub" / Path(name).name, revision or "main")

    found = read_checkpoint(
        Path(checkpoint), "a", GenerationSection(), revision=revision, fetch=fetch
    )

    base = "hub/base" if commit else "out/base"
    assert (found.weights, found.revision) == (str(here / base), commit)
    assert [Path(each.path).name for each in found.adapters] == (
        [] if checkpoint == "org/base" else [Path(checkpoint).name]
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("base", ["allenai/OLMo-2-1124-7B", "out/bass"])
def test_a_base_that_is_not_here_is_told(base: str) -> None:
    """With what the adapter says, which is a name on a hub more often than not."""
    with pytest.raises(WeightsError, match=f"base_model_name_or_path is '{base}', no folder here"):
        base_weights(adapter_config(Path("adapter"), base))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        (("F32",), "float32"),
        (("BF16", "BF16", "F32"), "bfloat16"),  # some norms stay in float32
        (("F16", "I64", "I64"), "float16"),
        (("I64",), "float32"),
    ],
)
def test_weights_are_read_in_the_type_of_most_tensors(types: tuple[str, ...], dtype: str) -> None:
    """Numbers of one training would differ by how its weights were handed over."""
    weights(Path("saved"), *types)

    assert read_checkpoint(Path("saved"), "saved", GenerationSection()).dtype == dtype


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_type_that_is_asked_for_counts(dtype: Literal["float16", "float32"]) -> None:
    """A large model is evaluated in half of its memory."""
    weights(Path("saved"), "F64")

    assert read_checkpoint(Path("saved"), "saved", GenerationSection(dtype=dtype)).dtype == dtype


@pytest.mark.usefixtures("here")
def test_weights_of_another_type_are_refused() -> None:
    """As a trainer's model is."""
    weights(Path("saved"), "F64")

    with pytest.raises(WeightsError, match="its tensors are F64, but must be one of F32, BF16, F"):
        read_checkpoint(Path("saved"), "saved", GenerationSection())
