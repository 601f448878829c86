"""Weights of which only the headers are ever read."""

import json
from collections.abc import Sequence
from pathlib import Path


def write_headers(file: Path, types: Sequence[str]) -> None:
    """Write a safetensors file of empty tensors with these types."""
    tensors = {
        f"tensor.{n}": {"dtype": each, "shape": [0], "data_offsets": [0, 0]}
        for n, each in enumerate(types)
    }
    header = json.dumps(tensors).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header)
