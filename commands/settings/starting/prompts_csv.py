"""Read prompts from a CSV file, as a spreadsheet saves it, for a new bank."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.settings.inputs import read_text, with_defaults, with_lines

_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("prompt", "text", "question", "instruction"),
    "gold_answer": ("gold_answer", "gold", "reference", "answer"),
    "prompt_id": ("prompt_id", "id"),
    "source": ("source",),
    "subject": ("subject", "topic"),
    "category": ("category",),
}
"""The columns that may hold each field of a prompt, the first that is there."""
_LONGEST_CELL: Final = 10_000_000  # characters


class PromptTable(NamedTuple):
    """The prompts of a CSV file, and the columns that were not used."""

    prompts: tuple[dict[str, object], ...]
    unused: tuple[str, ...]


def read_prompts(path: Path) -> PromptTable:
    """Read a CSV file with a header; its column `prompt` is needed, all others are not.

    Raises:
        ConfigurationError: It cannot be read, has no column of prompts or no rows, or rows without
            a prompt or with that of another row.
    """
    text = read_text(path, "CSV file", key="--from-csv")
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.DictReader(StringIO(text, newline=""), strict=True, delimiter=_separator(text))
    names = {name.strip().casefold(): name for name in rows.fieldnames or () if name}
    column = {field: found for field, of in _COLUMNS.items() if (found := _first(names, of))}
    if "text" not in column:
        there = ", ".join(names.values()) or "nothing"
        raise ConfigurationError(
            [f"{path}:1: no column holds the prompts; name one 'prompt' (there: {there})"]
        )
    try:
        prompts = tuple(_prompts(path, rows, column))
    except csv.Error as error:
        raise ConfigurationError([f"{path}:{rows.line_num}: not CSV: {error}"]) from error
    if not prompts:
        raise ConfigurationError([f"{path}: it holds no prompts below its header"])
    return PromptTable(
        prompts, tuple(name for name in names.values() if name not in column.values())
    )


def _separator(text: str) -> str:
    """Return what stands between the cells of the header; spreadsheets use these three."""
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _first(names: Mapping[str, str], of: Sequence[str]) -> str | None:
    return next((names[name] for name in of if name in names), None)


def _prompts(
    path: Path, rows: "csv.DictReader[str]", column: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    empty: list[int] = []
    repeated: list[int] = []
    ids: set[object] = set()
    for row in rows:
        cells = {field: (row[name] or "").strip() for field, name in column.items()}
        if cells["text"]:
            prompt = with_defaults({field: cell for field, cell in cells.items() if cell})
            if prompt["prompt_id"] in ids:
                repeated.append(rows.line_num)
            ids.add(prompt["prompt_id"])
            yield prompt
        else:
            empty.append(rows.line_num)
    if empty:
        fault = "this row has no prompt; remove it"
        raise ConfigurationError([with_lines(path, fault, empty)])
    if repeated:
        fault = "this row's prompt, or its id, stands in a row above; remove one of them"
        raise ConfigurationError([with_lines(path, fault, repeated)])
