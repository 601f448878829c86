"""What model files are called, and what their headers say."""

import hashlib
from pathlib import Path

import pytest

from commands.entrants.weights import file_digest, folder_digest, tensor_shapes
from commands.errors import WeightsError
from tests.commands.builders import BASE_SHAPES, write_weights


def test_one_byte_of_the_weights_changes_their_name(tmp_path: Path) -> None:
    """A response is named by the weights that made it, to the last byte."""
    first = write_weights(tmp_path / "first", first_byte=1)
    second = write_weights(tmp_path / "second", first_byte=2)

    assert folder_digest(first) != folder_digest(second)


def test_the_same_files_elsewhere_have_the_same_name(tmp_path: Path) -> None:
    """Moving a folder must not make its responses again."""
    here = write_weights(tmp_path / "here")
    there = write_weights(tmp_path / "far" / "there")

    assert folder_digest(here) == folder_digest(there)


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("tokenizer_config.json", True),
        ("chat_template.jinja", True),
        ("tokenizer.model", True),
        ("merges.txt", True),
        ("README.md", False),
        ("pytorch_model.bin", False),
        (".gitattributes", False),
    ],
)
def test_only_files_that_are_read_take_part_in_the_name(
    tmp_path: Path, name: str, matters: bool
) -> None:
    """Another chat template is another entrant, another README is not."""
    plain = write_weights(tmp_path / "plain")
    more = write_weights(tmp_path / "more")
    (more / name).write_text("x", encoding="utf-8")

    assert (folder_digest(plain) != folder_digest(more)) == matters


def test_a_missing_folder_says_how_to_fetch_one(tmp_path: Path) -> None:
    """A name on a hub is what people write first; only folders are read."""
    with pytest.raises(WeightsError, match="no such folder of weights; download it, for example"):
        folder_digest(tmp_path / "allenai" / "OLMo-2")


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    """Pickled weights may run code when they are loaded."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")

    with pytest.raises(WeightsError, match=r"holds no \*\.safetensors file; convert the weights"):
        folder_digest(tmp_path)


def test_a_file_that_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    """Caches of downloads hold links, and what they point at is pruned."""
    folder = write_weights(tmp_path / "weights")
    (folder / "config.json").symlink_to(tmp_path / "pruned")

    with pytest.raises(
        WeightsError, match=r"config\.json: it cannot be read: No such file.*; fetch"
    ):
        folder_digest(folder)


def test_a_pointer_of_git_lfs_is_told_as_such(tmp_path: Path) -> None:
    """A clone without Git LFS looks complete, and its pointers must not be named as weights."""
    folder = write_weights(tmp_path / "weights")
    pointer = b"version https://git-lfs.github.com/spec/v1\nsize 4865522496\n"
    (folder / "model.safetensors").write_bytes(pointer)

    with pytest.raises(
        WeightsError, match=r"it is a Git LFS pointer; fetch the file with `git lfs"
    ):
        folder_digest(folder)


def test_a_pointer_of_git_lfs_is_no_shard(tmp_path: Path) -> None:
    """A clone without Git LFS looks complete, and holds a hundred bytes for every shard."""
    pointer = tmp_path / "shard_0_lora.pt"
    pointer.write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 8712345\n")

    with pytest.raises(WeightsError, match=r"_lora\.pt: it is a Git LFS pointer; fetch .*lfs pull"):
        file_digest(pointer)


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
        b"version https://git-lfs.github.com/spec/v1\nsize 4865522496\n",
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
