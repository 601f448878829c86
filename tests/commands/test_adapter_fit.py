"""Whether an adapter fits its base, told from headers."""

from pathlib import Path

import pytest

from commands.entrants.weights import head_layers, require_fit, require_head_fit
from commands.errors import WeightsError
from tests.commands.builders import (
    LORA_SHAPES,
    Shapes,
    shard_shapes,
    write_config,
    write_olmo,
    write_weights,
)

LORA = "base_model.model.model"


def fit(folder: Path, adapter: Shapes, **base: tuple[int, ...]) -> None:
    """Write a base and an adapter, and require that they fit."""
    shapes = {f"model.{name}.weight": shape for name, shape in base.items()}
    base_folder = write_weights(folder / "base", shapes or {"model.q_proj.weight": (6, 4)})
    require_fit(base_folder, write_weights(folder / "adapter", adapter))


def pair(module: str, *, n_in: int = 4, n_out: int = 6, rank: int = 3) -> Shapes:
    """Return the shapes of a LoRA pair."""
    return {
        f"{LORA}.{module}.lora_A.weight": (rank, n_in),
        f"{LORA}.{module}.lora_B.weight": (n_out, rank),
    }


def test_an_adapter_that_fits_passes(tmp_path: Path) -> None:
    """B is (out, rank) and A is (rank, in), so B @ A has the shape of the weight."""
    fit(tmp_path, LORA_SHAPES)


def test_an_adapter_that_was_saved_under_its_name_fits_too(tmp_path: Path) -> None:
    """Peft writes its default adapter's name into the keys, or not."""
    fit(tmp_path, {key.replace(".weight", ".default.weight"): s for key, s in LORA_SHAPES.items()})


def test_tensors_that_are_no_lora_pair_are_left_to_the_backend(tmp_path: Path) -> None:
    """An adapter may hold whole modules beside its pairs."""
    fit(tmp_path, {**LORA_SHAPES, f"{LORA}.lm_head.weight": (9, 9)})


def test_a_weight_that_is_kept_transposed_fits(tmp_path: Path) -> None:
    """GPT-2 keeps its layers as (in, out)."""
    fit(tmp_path, pair("c_attn", n_in=4, n_out=12), c_attn=(4, 12))


def test_a_pair_for_an_embedding_is_left_to_the_backend(tmp_path: Path) -> None:
    """Only layers of two dimensions are compared here; convolutions have four."""
    fit(tmp_path, pair("conv", n_in=1, n_out=1), conv=(6, 4, 3, 3))


@pytest.mark.parametrize(
    ("adapter", "fault"),
    [
        (pair("q_proj", n_out=8), r"model\.q_proj is \[6, 4\], the adapter's \[8, 4\]"),
        (pair("q_proj", n_in=5), r"model\.q_proj is \[6, 4\], the adapter's \[6, 5\]"),
        ({**pair("q_proj"), f"{LORA}.q_proj.lora_B.weight": (6, 2)}, r"q_proj is \[6, 4\], the"),
        (pair("k_proj"), r"there is no model\.k_proj; use the weights that it was trained on"),
        ({f"{LORA}.q_proj.lora_A.weight": (3, 4)}, r"model\.q_proj has lora_A only"),
        ({f"{LORA}.q_proj.lora_B.weight": (6, 3)}, r"model\.q_proj has lora_B only"),
        ({"model.q_proj.weight": (6, 4)}, "it holds no LoRA tensors; name a folder saved by peft"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(
    tmp_path: Path, adapter: Shapes, fault: str
) -> None:
    """Found here it stops a run at once; found by the backend, after hours of other work."""
    with pytest.raises(WeightsError, match=fault):
        fit(tmp_path, adapter)


def test_only_the_first_faults_of_many_are_listed(tmp_path: Path) -> None:
    """An adapter for other weights misfits everywhere, and eight examples say as much as 200."""
    modules = [f"layers.{n}.q_proj" for n in range(10)]
    adapter = {key: shape for module in modules for key, shape in pair(module).items()}

    with pytest.raises(WeightsError) as caught:
        fit(tmp_path, adapter)

    assert caught.value.why.count("there is no") == 8
    assert caught.value.why.endswith(" and 2 more")


def head_fit(folder: Path, shard: Shapes) -> None:
    """Write an OLMo 2 of four layers and a shard, and require that it fits heads of two."""
    base = write_olmo(folder / "base", n_layers=4)
    require_head_fit(base, write_weights(folder / "shard", shard), head_layers(base, 2))


def test_heads_are_the_last_layers_of_the_weights(tmp_path: Path) -> None:
    """The trunk keeps at least one, from which they all go on."""
    base = write_olmo(tmp_path / "base", n_layers=4)

    assert head_layers(base, 1) == range(3, 4)
    assert head_layers(base, 3) == range(1, 4)


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"model_type": "llama", "num_hidden_layers": 4}, "its model_type is 'llama'; loader 'hyd"),
        ({"model_type": "olmo2", "num_hidden_layers": 2}, "it has 2 layers; heads of depth 2 lea"),
        ({"model_type": "gpt2"}, "config.json lacks model_type or num_hidden_layers; fetch"),
    ],
)
def test_weights_that_no_hydra_grows_on_are_refused(
    tmp_path: Path, config: dict[str, object], fault: str
) -> None:
    """Other architectures route their layers in another way, and would fail much later."""
    write_config(tmp_path, **config)

    with pytest.raises(WeightsError, match=fault):
        head_layers(tmp_path, 2)


def test_weights_without_a_config_are_refused(tmp_path: Path) -> None:
    """Nothing else says how many layers there are."""
    with pytest.raises(
        WeightsError,
        match=r"its config\.json lacks model_type or num_hidden_layers; fetch the folder",
    ):
        head_layers(tmp_path, 2)


@pytest.mark.parametrize("layers", [(2, 3), (2,), (3,)])
def test_a_shard_that_changes_mlps_of_the_heads_fits(
    tmp_path: Path, layers: tuple[int, ...]
) -> None:
    """All of a head's layers, or some."""
    head_fit(tmp_path, shard_shapes(*layers))


@pytest.mark.parametrize(
    ("shard", "fault"),
    [
        (
            shard_shapes(1, 2),
            r"outside the MLPs of layers 2 to 3: \S+layers\.1\.mlp\.down_proj\.lora_A",
        ),
        (shard_shapes(4), r"layers\.4\.mlp.*; set heads_depth to what it was trained with"),
        ({**shard_shapes(2, 3), **pair("layers.2.self_attn.q_proj")}, r"2 to 3: \S+q_proj\.lora_A"),
        ({**shard_shapes(2, 3), f"{LORA}.lm_head.weight": (9, 9)}, r"2 to 3: \S+lm_head\.weight"),
        (pair("layers.3.mlp.gate_proj", n_out=8), r"gate_proj is \[6, 4\], the adapter's \[8, 4\]"),
        ({}, "it holds no LoRA tensors"),
    ],
    ids=["trunk", "beyond", "attention", "whole_module", "shape", "nothing"],
)
def test_a_shard_for_anything_else_is_refused(tmp_path: Path, shard: Shapes, fault: str) -> None:
    """Heads have MLPs of their own and share the rest, where its tensors would change all."""
    with pytest.raises(WeightsError, match=fault):
        head_fit(tmp_path, shard)
