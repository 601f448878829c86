"""Weights of which only the headers are ever read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_headers(file: Path, types: Sequence[str]) -> None:
    """Write a safetensors file of empty tensors with these types."""
    _write(file, {f"tensor.{n}": (each, [0]) for n, each in enumerate(types)})


def write_shapes(file: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write the header of a safetensors file whose tensors have these shapes."""
    _write(file, {name: ("F32", shape) for name, shape in shapes.items()})


def _write(file: Path, tensors: Mapping[str, tuple[str, Sequence[int]]]) -> None:
    told = {
        name: {"dtype": each, "shape": [*shape], "data_offsets": [0, 0]}
        for name, (each, shape) in tensors.items()
    }
    header = json.dumps(told).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header)
