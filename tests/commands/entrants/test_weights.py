"""Model files: what they are called, what their headers say, and which adapter fits."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.entrants.weights import (
    file_digest,
    folder_digest,
    head_depth,
    head_layers,
    require_head_fit,
    require_tensors_fit,
    tensor_shapes,
    training_step,
)
from commands.errors import WeightsError
from tests.support.builders.commands import (
    BASE_SHAPES,
    LORA_SHAPES,
    Shapes,
    shard_shapes,
    write_config,
    write_olmo,
    write_weights,
)


def test_weights_are_named_by_their_bytes_wherever_they_lie(tmp_path: Path) -> None:
    """Moving a folder must not make its responses again; one byte makes others."""
    here, there = (write_weights(tmp_path / name, first_byte=1) for name in ("here", "far/there"))
    other = write_weights(tmp_path / "other", first_byte=2)

    assert folder_digest(here) == folder_digest(there) != folder_digest(other)


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("tokenizer_config.json", True),
        ("additional_chat_templates/tools.jinja", True),
        ("merges.txt", True),
        ("README.md", False),
        ("pytorch_model.bin", False),
        ("checkpoint-5/model.safetensors", False),
    ],
)
def test_only_files_that_are_read_take_part_in_the_name(
    tmp_path: Path, name: str, matters: bool
) -> None:
    """Another chat template is another entrant, another README is not."""
    plain = write_weights(tmp_path / "plain")
    more = write_weights(tmp_path / "more")
    (more / name).parent.mkdir(exist_ok=True)
    (more / name).write_text("x", encoding="utf-8")

    assert (folder_digest(plain) != folder_digest(more)) == matters


LFS = b"version https://git-lfs.github.com/spec/v1\nsize 4865522496\n"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda at: at.rename(at / "../o"), "no such folder of weights; download it, for example"),
        (
            lambda at: (at / "model.safetensors").rename(at / "pytorch_model.bin"),
            r"holds no \*\.safetensors file; convert the weights",
        ),
        (
            lambda at: (at / "config.json").symlink_to(at / "pruned"),
            r"config\.json: it cannot be read: No such file.*; fetch",
        ),
        (
            lambda at: (at / "model.safetensors").write_bytes(LFS),
            r"it is a Git LFS pointer; fetch the file with `git lfs",
        ),
    ],
    ids=["missing", "pickled", "pruned", "pointer"],
)
def test_a_folder_that_is_none_of_whole_weights_is_told_with_the_remedy(
    tmp_path: Path, spoil: Callable[[Path], object], why: str
) -> None:
    """Pickles may run code; links of a cache are pruned; a clone without Git LFS looks complete."""
    folder = write_weights(tmp_path / "weights")
    spoil(folder)

    with pytest.raises(WeightsError, match=why):
        folder_digest(folder)


def test_a_file_is_named_by_its_bytes(tmp_path: Path) -> None:
    """Pinned to what sha256sum prints, so that users can check what a ledger says."""
    file = tmp_path / "shard_0_lora.pt"
    file.write_bytes(b"abc")

    assert file_digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_that_was_saved_again_has_another_name(tmp_path: Path) -> None:
    """Training saves each checkpoint over the last one, of the same size, in one process."""
    folder = write_weights(tmp_path / "latest", first_byte=1)
    first = folder_digest(folder)

    again = write_weights(tmp_path / "again", first_byte=2)
    (again / "model.safetensors").replace(folder / "model.safetensors")

    assert folder_digest(folder) != first


def test_a_file_that_is_as_it_was_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entrants share weights of many gigabytes; each is hashed once a process."""
    file = write_weights(tmp_path / "weights") / "model.safetensors"
    first = file_digest(file)
    monkeypatch.delattr(hashlib, "file_digest")

    assert file_digest(file) == first


def test_shapes_are_read_from_the_header_alone(tmp_path: Path) -> None:
    """Checking a fit must not read gigabytes, nor import torch."""
    folder = write_weights(tmp_path / "weights")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])

    assert tensor_shapes(folder) == BASE_SHAPES


def test_shapes_of_all_shards_are_put_together(tmp_path: Path) -> None:
    """Large weights are stored as several files."""
    one, two = {"a": (2, 3)}, {"b": (4,)}
    folder = write_weights(tmp_path / "weights", one)
    shard = write_weights(tmp_path / "other", two) / "model.safetensors"
    shard.rename(folder / "model-00002-of-00002.safetensors")

    assert tensor_shapes(folder) == {**one, **two}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        (100).to_bytes(8, "little") + b'{"a": {"sha',
        (2).to_bytes(8, "little") + b"[]",
        (15).to_bytes(8, "little") + b'{"a": {"shape": "x"}}',
        LFS,
        b"\xff" * 64,
    ],
    ids=["empty", "cut", "list", "no_shape", "git_lfs_pointer", "noise"],
)
def test_a_header_that_cannot_be_read_is_told_with_its_file(tmp_path: Path, content: bytes) -> None:
    """A clone without Git LFS leaves pointers; read as lengths, they ask for exabytes."""
    folder = write_weights(tmp_path / "weights")
    (folder / "model.safetensors").write_bytes(content)

    with pytest.raises(WeightsError, match=r"model\.safetensors: its header cannot be read; fetch"):
        tensor_shapes(folder)


LORA = "base_model.model.model"


def fit(folder: Path, adapter: Shapes, **base: tuple[int, ...]) -> None:
    """Write a base and an adapter, and require that they fit."""
    shapes = {f"model.{name}.weight": shape for name, shape in base.items()}
    base_folder = write_weights(folder / "base", shapes or {"model.q_proj.weight": (6, 4)})
    adapter_folder = write_weights(folder / "adapter", adapter)
    require_tensors_fit(base_folder, adapter_folder, tensor_shapes(adapter_folder))


def pair(module: str, *, n_in: int = 4, n_out: int = 6, rank: int = 3) -> Shapes:
    """Return the shapes of a LoRA pair."""
    return {
        f"{LORA}.{module}.lora_A.weight": (rank, n_in),
        f"{LORA}.{module}.lora_B.weight": (n_out, rank),
    }


@pytest.mark.parametrize(
    ("adapter", "base"),
    [
        (LORA_SHAPES, {}),
        ({key.replace(".weight", ".default.weight"): s for key, s in LORA_SHAPES.items()}, {}),
        ({**LORA_SHAPES, f"{LORA}.lm_head.weight": (9, 9)}, {}),
        (pair("c_attn", n_in=4, n_out=12), {"c_attn": (4, 12)}),
        (pair("conv", n_in=1, n_out=1), {"conv": (6, 4, 3, 3)}),
    ],
    ids=["plain", "named default", "beside a whole module", "transposed", "four dimensions"],
)
def test_an_adapter_that_fits_passes(
    tmp_path: Path, adapter: Shapes, base: dict[str, tuple[int, ...]]
) -> None:
    """B is (out, rank) and A is (rank, in), so B @ A has the shape of the weight, or its inverse.

    What is no pair of a linear layer is compared where it is loaded.
    """
    fit(tmp_path, adapter, **base)


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


@pytest.mark.parametrize(
    ("keys", "depth"),
    [
        (shard_shapes(2, 3), 2),
        (shard_shapes(3), 1),
        ({**shard_shapes(2), **pair("layers.0.self_attn.q_proj")}, 2),
        (shard_shapes(4), 1),
        ({}, 1),
    ],
    ids=["whole", "last", "attention", "beyond", "nothing"],
)
def test_a_head_begins_where_its_tensors_do(keys: Shapes, depth: int) -> None:
    """What cannot be of a head is refused later, by name."""
    assert head_depth(keys, 4) == depth


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"model_type": "llama", "num_hidden_layers": 4}, "its model_type is 'llama'; loader 'hyd"),
        ({"model_type": "olmo2", "num_hidden_layers": 2}, "it has 2 layers; heads of depth 2 lea"),
        ({"model_type": "gpt2"}, r"its config\.json lacks model_type or num_hidden_layers; fetch"),
    ],
)
def test_weights_that_no_hydra_grows_on_are_refused(
    tmp_path: Path, config: dict[str, object], fault: str
) -> None:
    """Other architectures route their layers in another way, and would fail much later."""
    write_config(tmp_path, **config)

    with pytest.raises(WeightsError, match=fault):
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
        (shard_shapes(4), r"layers\.4\.mlp.*; use shards of the MLPs of the last layers, with"),
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


@pytest.mark.parametrize(
    ("name", "state", "step"),
    [
        ("checkpoint-60", None, 60),
        ("step_1000", None, 1000),
        ("global_step7", None, 7),
        ("final", None, None),
        ("final", '{"global_step": 120, "epoch": 3.0}', 120),
        ("checkpoint-60", '{"global_step": 61}', 61),
    ],
)
def test_the_step_of_a_checkpoint_is_the_one_that_its_trainer_wrote(
    tmp_path: Path, name: str, state: str | None, step: int | None
) -> None:
    """Or else that of its name: a folder may have been renamed."""
    folder = tmp_path / name
    folder.mkdir()
    if state is not None:
        (folder / "trainer_state.json").write_text(state, encoding="utf-8")

    assert training_step(folder, folder.name) == step


@pytest.mark.parametrize("state", ["{", "{}", '{"global_step": -1}'])
def test_a_torn_trainer_state_is_told_with_its_place(tmp_path: Path, state: str) -> None:
    """The curve would have a point where none belongs."""
    (tmp_path / "trainer_state.json").write_text(state, encoding="utf-8")

    with pytest.raises(WeightsError, match=r"trainer_state\.json.*global_step cannot be read"):
        training_step(tmp_path, tmp_path.name)
