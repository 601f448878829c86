"""What shipped evaluations have in common: a name from settings, and items that lie ready."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from pydantic import ConfigDict, validate_call

from commands.errors import ConfigurationError, first_lines, place_and_fault
from commands.evaluating.evaluation import Evaluation
from ledger.identity import Json, digest_of

Item = TypeVar("Item")

checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))
"""Checks what a constructor is given: it comes from a settings file."""


class ListedEvaluation(Evaluation, Generic[Item]):
    """An evaluation whose items are read or made when it is, each with a label."""

    name = ""

    def __init__(self, name: str, items: Mapping[str, Item]) -> None:
        """Take the name, and the items by their labels."""
        self.name = name
        self.items = tuple(items.values())
        self._labels = tuple(items)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def label(self, index: int) -> str:
        """Say where an item comes from."""
        return self._labels[index]


Row = TypeVar("Row", bound=msgspec.Struct)


def read_lines(path: Path, shape: type[Row]) -> Mapping[str, Row]:
    """Read a file line by line: its rows by "file:line"; keys that the shape lacks are ignored.

    A shape refuses what it cannot mean by a ValueError of its `__post_init__`.

    Raises:
        ConfigurationError: The file is missing, holds nothing, or lines are not of the shape.
    """
    rows: dict[str, Row] = {}
    faults: list[str] = []
    decoder = msgspec.json.Decoder(shape)
    for number, line in _lines(path):
        try:
            rows[f"{path.name}:{number}"] = decoder.decode(line)
        except msgspec.ValidationError as error:
            place, why = place_and_fault(error)
            faults.append(f"{path}:{number}: {f'{place}: ' if place else ''}{why}")
        except ValueError as error:
            faults.append(f"{path}:{number}: not JSON: {error}")
    if not rows and not faults:
        faults.append(f"{path}: it is empty; it holds one JSON object a line")
    if faults:
        raise ConfigurationError([*first_lines(faults, len(faults), "fault")])
    return rows


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, numbered from 1."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from ((n, line) for n, line in enumerate(lines, start=1) if not line.isspace())
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def shuffled(texts: Iterable[str], *seed: Json) -> list[str]:
    """Return texts by the SHA-256 of seed and text: the same on every machine, for ever."""
    return sorted(texts, key=lambda text: digest_of([*seed, text]))
