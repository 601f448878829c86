"""A head's shard, from either kind of file."""

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedModel

from commands.backends.lora import merge_lora
from commands.backends.lora_files import as_peft_folder, shard_lora
from commands.errors import WeightsError
from tests.commands.backends.original_head import original_head, save_slim

LAST = range(1, 2)


def base(weights: Path) -> PreTrainedModel:
    """Load the weights that the shards are for."""
    return AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)


@pytest.fixture
def shards(weights: Path, tmp_path: Path) -> list[Path]:
    """Give two shards of one head in the original's layout, of two ranks."""
    return [
        save_slim(original_head(base(weights), LAST, rank=rank), tmp_path / f"rank_{rank}.pt")
        for rank in (2, 4)
    ]


def imported(shard: Path, weights: Path) -> Path:
    """Write the folder of peft that a shard stands for, beside it."""
    folder = shard.with_suffix("")
    folder.mkdir()
    for name, content in as_peft_folder(shard, LAST, str(weights)).files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_either_kind_is_merged_as_peft_merges_it(weights: Path, shards: list[Path]) -> None:
    """Security then robustness, from the original's files, from folders, and by peft alone."""
    from_files, from_folders, by_peft = (base(weights) for _ in range(3))
    for shard in shards:
        folder = imported(shard, weights)
        from_files = merge_lora(from_files, shard_lora(shard, LAST))
        from_folders = merge_lora(from_folders, shard_lora(folder, LAST))
        by_peft = PeftModel.from_pretrained(by_peft, folder).merge_and_unload()

    expected = by_peft.state_dict()
    assert not torch.equal(
        expected["model.layers.1.mlp.up_proj.weight"],
        base(weights).state_dict()["model.layers.1.mlp.up_proj.weight"],
    )
    torch.testing.assert_close(from_files.state_dict(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(from_folders.state_dict(), expected, rtol=0, atol=1e-6)


def test_the_same_shard_gives_the_same_folder(weights: Path, shards: list[Path]) -> None:
    """A shard is named by its bytes: written again, it must keep its name."""
    first, second = (as_peft_folder(shards[0], LAST, str(weights)) for _ in range(2))

    assert first == second
    assert first.rank == 2
    assert set(first.shapes.values()) == {(2, 32), (64, 2), (2, 64), (32, 2)}


def test_a_folder_for_other_modules_is_no_shard(adapters: tuple[Path, Path]) -> None:
    """An adapter for attention cannot be a head's: attention is shared."""
    with pytest.raises(WeightsError, match=r"another layer or module .*layers\.0\.self_attn"):
        shard_lora(adapters[0], LAST)
