"""Weights as they lie on the disk: their digests, and the shapes of their tensors.

Everything here reads files only, without torch: a misfit is found before anything is recorded.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, TypeAdapter

from commands.errors import WeightsError
from ledger.identity import Digest, digest_of

# What transformers and peft read; anything else in the folder does not change a response.
_READ_SUFFIXES: Final = frozenset({".safetensors", ".json", ".jinja", ".model", ".txt"})
_POINTER: Final = b"version https://git-lfs"  # how a file begins that Git LFS has not fetched


def folder_digest(folder: Path) -> Digest:
    """Name a model folder by the names and contents of the files that are read.

    Raises:
        WeightsError: There is no such folder, or it holds no safetensors, or cannot be read.
    """
    if not folder.is_dir():
        remedy = f"download it, for example with `hf download ORG/NAME --local-dir {folder}`"
        raise WeightsError(folder, "there is no such folder of weights", remedy)
    files = sorted(file for file in folder.iterdir() if file.suffix in _READ_SUFFIXES)
    if not any(file.suffix == ".safetensors" for file in files):
        raise WeightsError(folder, "it holds no *.safetensors file", "convert the weights first")
    return digest_of([[file.name, file_digest(file)] for file in files])


def file_digest(file: Path) -> Digest:
    """Name a file by its content; one that is as it was is not read again.

    Training saves to the same file again and again, in one process.

    Raises:
        WeightsError: It cannot be read, or only a Git LFS pointer stands in for it.
    """
    try:
        now = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return _digest(file, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@cache
def _digest(file: Path, _state: tuple[int, ...]) -> Digest:
    try:
        with file.open("rb") as stream:
            is_pointer = stream.read(len(_POINTER)) == _POINTER
            stream.seek(0)
            digest = Digest(hashlib.file_digest(stream, "sha256").hexdigest())
    except OSError as error:
        raise _unreadable(file, error) from error
    if is_pointer:
        raise WeightsError(file, "it is a Git LFS pointer", "fetch the file with `git lfs pull`")
    return digest


def _unreadable(file: Path, error: OSError) -> WeightsError:
    remedy = "fetch the file again, or correct its permissions"
    return WeightsError(file, f"it cannot be read: {error.strerror}", remedy)


def tensor_shapes(folder: Path) -> Mapping[str, tuple[int, ...]]:
    """Return the shape of every tensor in a folder's safetensors files, from their headers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        header = _safetensors_header(file)
        shapes |= {name: each.shape for name, each in header.items() if name != "__metadata__"}
    return shapes


class _Entry(BaseModel):
    """What a safetensors header says of a tensor; `__metadata__` has no shape."""

    shape: tuple[int, ...] = ()


_Header: Final = TypeAdapter(dict[str, _Entry])


def _safetensors_header(file: Path) -> Mapping[str, _Entry]:
    """Read a safetensors header: eight bytes of length, then JSON."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            # Eight bytes of another format, such as a Git LFS pointer, ask for exabytes.
            return _Header.validate_json(stream.read(min(length, file.stat().st_size)))
    except (OSError, ValueError) as error:
        remedy = "fetch the file again, it is cut or no safetensors"
        raise WeightsError(file, "its header cannot be read", remedy) from error
