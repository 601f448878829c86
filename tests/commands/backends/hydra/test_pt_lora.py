"""Files of the original's layout: read exactly, or refused by name."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedModel

from commands.backends.hydra.pt_lora import as_peft_folder, read_pt
from commands.backends.weights.lora import merge_lora, read_lora
from commands.errors import WeightsError
from tests.support.weights.original_head import Block, original_head, save_fat, save_slim

BOTH, LAST = range(2), range(1, 2)
RANK = 3
KEY = "base_model.model.blocks.{}.feed_forward.{}.lora_{}.default.weight"
A = KEY.format(0, "w1", "A")

State = dict[str, torch.Tensor]


@pytest.fixture
def base(weights: Path) -> Callable[[], PreTrainedModel]:
    """Give a function that loads the weights anew: merging uses them up."""
    return lambda: AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)


@pytest.fixture
def state() -> State:
    """Give the tensors of a head of two layers."""
    shapes = {"w1": (64, 32), "w2": (32, 64), "w3": (64, 32)}
    stream = torch.Generator().manual_seed(0)
    return {
        KEY.format(block, weight, half): torch.randn(shape, generator=stream)
        for block in BOTH
        for weight, (n_out, n_in) in shapes.items()
        for half, shape in (("A", (RANK, n_in)), ("B", (n_out, RANK)))
    }


def saved(folder: Path, content: object) -> Path:
    """Write a file as the original does."""
    torch.save(content, folder / "shard_0_lora.pt")
    return folder / "shard_0_lora.pt"


@pytest.mark.parametrize("save", [save_slim, save_fat])
def test_a_file_makes_of_our_mlps_what_it_made_of_theirs(
    base: Callable[[], PreTrainedModel], tmp_path: Path, save: Callable[..., Path]
) -> None:
    """The check knows nothing of names: each block computes the same with the LoRA beside it."""
    head = original_head(base(), BOTH, rank=RANK)
    merged = merge_lora(base(), read_pt(save(head, tmp_path / "head.pt"), len(BOTH)))

    states = torch.randn(5, 32, generator=torch.Generator().manual_seed(1))
    for n, block in enumerate(head.get_submodule("base_model.model.blocks").children()):
        assert isinstance(block, Block)
        ours = merged.get_submodule(f"model.layers.{n}.mlp")(states)
        torch.testing.assert_close(ours, block.feed_forward(states), rtol=1e-5, atol=1e-5)


def without(*keys: str) -> Callable[[State], object]:
    """Return what takes tensors away."""
    return lambda state: {key: value for key, value in state.items() if key not in keys}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (without(A), f"head of 2 layers: missing {A}; save it"),
        (
            lambda state: {k: v for k, v in state.items() if "w1" in k},
            r"missing .*blocks\.0.*w2.*blocks\.0.*w3.*blocks\.1.*w2",
        ),
        (
            lambda state: {k.replace("s.1", "s.2"): v for k, v in state.items()},
            r"head of 3 layers: missing base_model\.model\.blocks\.1\.feed_forward\.w1\.lora_A",
        ),
        (
            lambda state: state | {A: torch.ones(RANK + 1, 32)},
            rf"ranks differ: 3 in .*, 4 in {A}; save",
        ),
        (
            lambda state: {k.replace("blocks", "layers"): v for k, v in state.items()},
            r"another layout than .*: base_model\.model\.layers\.0\.feed_forward",
        ),
        (lambda _: {}, "no LoRA tensors, but nothing"),
        (lambda _: {("lora_A", 1): 2}, "no LoRA tensors, but .*lora_A"),
        (lambda _: {"head_state_dict": [1]}, "no tensors by name, but a dict"),
        (lambda _: torch.ones(2), "no tensors by name, but a Tensor"),
        (lambda state: state | {A: "text"}, f"no matrices of floats: {A}"),
        (lambda state: state | {A: torch.ones(0, 32)}, "no matrices of floats"),
    ],
)
def test_what_is_not_one_whole_adapter_is_refused_by_name(
    state: State, tmp_path: Path, spoil: Callable[[State], object], why: str
) -> None:
    """Loaded as the original did, each of these would be merged in part, or not at all."""
    file = saved(tmp_path, spoil(state))

    with pytest.raises(WeightsError, match=why) as refusal:
        read_pt(file, len(BOTH))
    assert refusal.value.path == file


class Trap:
    """An object whose pickle makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        """Set the trap."""
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        """Say what unpickling calls."""
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("key", [A, "lr_scheduler"])
def test_code_in_a_pickle_is_named_and_not_run(state: State, tmp_path: Path, key: str) -> None:
    """Weights are downloaded from strangers."""
    sprung = tmp_path / "sprung"
    file = saved(tmp_path, {**state, key: Trap(sprung)})

    with pytest.raises(WeightsError, match=r"may be code, which is never run: .*\.mkdir; save"):
        read_pt(file, len(BOTH))

    assert not sprung.exists()


def test_code_in_an_old_pickle_is_not_run(tmp_path: Path) -> None:
    """Before 2020 torch wrote bare pickles, in which names cannot be looked for."""
    sprung = tmp_path / "sprung"
    file = tmp_path / "old.pt"
    file.write_bytes(pickle.dumps(Trap(sprung), protocol=2))

    with pytest.raises(WeightsError, match="it is cut, damaged or not of torch"):
        read_pt(file, len(BOTH))

    assert not sprung.exists()


def test_a_git_lfs_pointer_and_a_missing_file_are_named(tmp_path: Path) -> None:
    """What a clone without Git LFS has in the place of every shard; or a mistyped path."""
    file = tmp_path / "shard_0_lora.pt"
    with pytest.raises(WeightsError, match=r"shard_0_lora\.pt: .*cannot be read.*No such file"):
        read_pt(file, len(BOTH))

    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4360000\n")
    with pytest.raises(WeightsError, match=r"it is a Git LFS pointer; .*git lfs pull"):
        read_pt(file, len(BOTH))


@pytest.mark.parametrize("zipped", [True, False])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_whole(
    state: State, tmp_path: Path, zipped: bool, data: st.DataObject
) -> None:
    """A download that stopped, or a bad disk: never a traceback, never a part of an adapter."""
    file = tmp_path / "damaged.pt"
    torch.save(state, file, _use_new_zipfile_serialization=zipped)
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    damage = data.draw(st.binary(min_size=1, max_size=4) | st.none())
    file.write_bytes(content[:at] + (damage + content[at + len(damage) :] if damage else b""))

    try:
        lora = read_pt(file, len(BOTH))
    except WeightsError as refusal:
        assert refusal.path == file  # noqa: PT017  # either is right
    else:
        assert len(lora.tensors) == len(state)


@pytest.fixture
def shards(base: Callable[[], PreTrainedModel], tmp_path: Path) -> list[Path]:
    """Give two shards of one head in the original's layout, of two ranks."""
    return [
        save_slim(original_head(base(), LAST, rank=rank), tmp_path / f"rank_{rank}.pt")
        for rank in (2, 4)
    ]


def imported(shard: Path, weights: Path) -> Path:
    """Write the folder of peft that a shard stands for, beside it."""
    folder = shard.with_suffix("")
    folder.mkdir()
    for name, content in as_peft_folder(shard, LAST.stop, str(weights)).files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_either_kind_is_merged_as_peft_merges_it(
    base: Callable[[], PreTrainedModel], weights: Path, shards: list[Path]
) -> None:
    """Security then robustness, from the original's files, from folders, and by peft alone."""
    from_files, from_folders, by_peft = (base() for _ in range(3))
    for shard in shards:
        folder = imported(shard, weights)
        from_files = merge_lora(from_files, read_pt(shard, LAST.stop))
        from_folders = merge_lora(from_folders, read_lora(folder))
        by_peft = PeftModel.from_pretrained(by_peft, folder).merge_and_unload()

    expected = by_peft.state_dict()
    assert not torch.equal(
        expected["model.layers.1.mlp.up_proj.weight"],
        base().state_dict()["model.layers.1.mlp.up_proj.weight"],
    )
    torch.testing.assert_close(from_files.state_dict(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(from_folders.state_dict(), expected, rtol=0, atol=1e-6)


def test_the_same_shard_gives_the_same_folder(weights: Path, shards: list[Path]) -> None:
    """A shard is named by its bytes: written again, it must keep its name."""
    first, second = (as_peft_folder(shards[0], LAST.stop, str(weights)) for _ in range(2))

    assert first == second
    assert first.rank == 2
    assert set(first.shapes.values()) == {(2, 32), (64, 2), (2, 64), (32, 2)}


def test_a_folder_for_other_modules_is_no_shard(adapters: tuple[Path, Path]) -> None:
    """An adapter for attention cannot be a head's: attention is shared."""
    with pytest.raises(WeightsError, match=r"another layer or module .*layers\.0\.self_attn"):
        as_peft_folder(adapters[0], LAST.stop, "weights")
