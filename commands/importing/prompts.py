"""Read prompts from a CSV file, as a spreadsheet saves it, for a new bank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.importing.formats.files import csv_sheet
from commands.importing.formats.rows import BadRow, Record
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
    header, rows = csv_sheet(StringIO(text, newline=""))
    names = {name.strip().casefold(): name for name in header if name.strip()}
    column = {field: found for field, of in _COLUMNS.items() if (found := _first(names, of))}
    if "text" not in column:
        there = ", ".join(names.values()) or "nothing"
        raise ConfigurationError(
            [f"{path}:1: no column holds the prompts; name one 'prompt' (there: {there})"]
        )
    prompts = tuple(_prompts(path, rows, column))
    if not prompts:
        raise ConfigurationError([f"{path}: it holds no prompts below its header"])
    return PromptTable(
        prompts, tuple(name for name in names.values() if name not in column.values())
    )


def _first(names: Mapping[str, str], of: Sequence[str]) -> str | None:
    return next((names[name] for name in of if name in names), None)


def _prompts(
    path: Path, rows: Iterable[Record | BadRow], column: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    faulty: dict[str, list[int]] = {}  # lines by fault
    ids: set[object] = set()
    for row in rows:
        if isinstance(row, BadRow):
            faulty.setdefault(row.why, []).append(row.line)
            continue
        cells = {field: str(row.fields[name]).strip() for field, name in column.items()}
        prompt = with_defaults({field: cell for field, cell in cells.items() if cell})
        if not cells["text"]:
            faulty.setdefault("this row has no prompt; remove it", []).append(row.line)
        elif prompt["prompt_id"] in ids:
            faulty.setdefault(_REPEATED, []).append(row.line)
        else:
            ids.add(prompt["prompt_id"])
            yield prompt
    if faulty:
        raise ConfigurationError([with_lines(path, *each) for each in faulty.items()])


_REPEATED: Final = "this row's prompt, or its id, stands in a row above; remove one of them"
