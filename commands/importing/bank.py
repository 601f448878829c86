"""Read the bank that [prompts] bank names: a file, or a data set of the Hugging Face Hub.

For a new bank, prompts are also taken from the rows of a table.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from commands.errors import ConfigurationError
from commands.importing.formats.rows import (
    PROMPT_COLUMNS,
    BadRow,
    Record,
    Sheet,
    in_one_text,
    is_missing,
    unpacked,
)
from commands.settings.hub_dataset import HubDataset, hub_dataset
from commands.settings.inputs import prompts_in, read_bank, with_defaults, with_lines
from commands.settings.toml import from_home
from commands.settings.turns import FORMS, with_turns
from ledger.events.registration import Prompt

OpenDataset: TypeAlias = Callable[[HubDataset], Sheet]
"""Opens a data set of the Hub, or of its cache on this machine."""


def no_dataset(dataset: HubDataset) -> Sheet:
    """Refuse a bank on the Hub, where nothing reads one."""
    raise ConfigurationError([f"{dataset.address}: nothing here reads data sets of the Hub"])


def bank_named(
    bank: str, folder: Path, open_dataset: OpenDataset, n_samples: int = 1
) -> tuple[Prompt, ...]:
    """Read a bank; its relative path starts from the folder.

    Raises:
        ConfigurationError: It cannot be read, or holds what is no prompt.
    """
    dataset = hub_dataset(bank)
    if dataset is None:
        return read_bank(folder / from_home(Path(bank)), n_samples)
    header, rows = open_dataset(dataset)
    column = _columns(dataset, header)
    source = {} if "source" in column else {"source": dataset.name}
    prompts = prompts_of_rows(dataset.address, rows, column)
    lines = (json.dumps({**prompt, **source}) for prompt in prompts)
    return prompts_in(dataset.address, "\n".join(lines), n_samples)


def _columns(dataset: HubDataset, header: Sequence[str]) -> Mapping[str, str]:
    """Return the column of each field: as the address says, else by its usual names.

    Raises:
        ConfigurationError: There is no such column, or none that holds the prompts.
    """
    names = {name.strip().casefold() for name in header}
    said = {field: name.strip().casefold() for field, name in dataset.columns.items() if name}
    there = f"(there: {', '.join(header)})"
    if lacking := [field for field, name in said.items() if name not in names]:
        fault = f"there is no column {dataset.columns[lacking[0]]!r}, which {lacking[0]}= names"
        raise ConfigurationError([f"{dataset.address}: {fault} {there}"])
    skipped = dataset.columns.keys() | (ASKED if ASKED & said.keys() else frozenset())
    usual = {
        field: [name for name in of if name in names and name not in said.values()]
        for field, of in PROMPT_COLUMNS.items()
        if field not in skipped
    }
    columns = {**usual, **{field: [name] for field, name in said.items()}}
    if not any(columns.get(field) for field in ASKED):
        fault = "no column holds the prompts; say which, as &text=COLUMN"
        raise ConfigurationError([f"{dataset.address}: {fault} {there}"])
    return columns_by_field(dataset.address, header, columns)


ASKED: Final = frozenset({"text", *FORMS})
"""The fields of which a prompt has one."""


def columns_by_field(
    place: Path | str, header: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    """Return the column of each field of a prompt that a header has."""
    names = {name.strip().casefold(): name for name in header if name.strip()}
    given = Counter(name.strip().casefold() for name in header)
    if twice := [name for names_ in columns.values() for name in names_ if given[name] > 1]:
        remedy = "rename all but the one to read"
        faults = [
            f"{place}:1: there are {given[name]} columns {name!r}; {remedy}" for name in twice
        ]
        raise ConfigurationError(faults)
    found = {field: [names[name] for name in of if name in names] for field, of in columns.items()}
    column = {field: known[0] for field, known in found.items() if known}
    if not names:
        raise ConfigurationError([f"{place}: it holds no prompts below its header"])
    if not ASKED & column.keys():
        there = ", ".join(names.values())
        raise ConfigurationError(
            [f"{place}:1: no column holds the prompts; name one 'prompt' (there: {there})"]
        )
    return column


def other_columns(header: Sequence[str], column: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a header that hold no field of a prompt."""
    names = {name.strip().casefold(): name for name in header if name.strip()}
    return tuple(name for name in names.values() if name not in column.values())


def prompts_of_rows(
    place: Path | str, rows: Iterable[Record | BadRow], column: Mapping[str, str]
) -> tuple[dict[str, object], ...]:
    """Return the prompts of rows, by the column of each field.

    Raises:
        ConfigurationError: There is none, or a row has none or that of another row.
    """
    prompts = tuple(_prompts(place, rows, column))
    if not prompts:
        raise ConfigurationError([f"{place}: it holds no prompts below its header"])
    return prompts


def _prompts(
    place: Path | str, rows: Iterable[Record | BadRow], column: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    faulty: dict[str, list[int]] = {}  # lines by fault
    first: dict[object, int] = {}  # lines of ids and of texts
    for row in rows:
        if isinstance(row, BadRow):
            faulty.setdefault(row.why, []).append(row.line)
            continue
        try:
            cells = {field: _cell(field, row.fields.get(name)) for field, name in column.items()}
            prompt = _bank_row_of({field: cell for field, cell in cells.items() if cell})
        except ConfigurationError as error:
            for fault in error.faults:
                faulty.setdefault(fault, []).append(row.line)
            continue
        if first.setdefault(prompt["prompt_id"], row.line) != row.line:
            what = f"the id {prompt['prompt_id']!r}" if "prompt_id" in column else "the prompt"
            fault = f"{what} is that of line {first[prompt['prompt_id']]}; remove one of them"
            faulty.setdefault(fault, []).append(row.line)
        else:
            yield prompt
    if faulty:
        raise ConfigurationError([with_lines(place, *each) for each in faulty.items()])


def _bank_row_of(given: Mapping[str, object]) -> dict[str, object]:
    if not ASKED & given.keys():
        raise ConfigurationError(["this row has no prompt; remove it"])
    return bank_row(given)


def bank_row(given: Mapping[str, object]) -> dict[str, object]:
    """Return a prompt as a bank has it: with the defaults, a conversation as it was given.

    Raises:
        ConfigurationError: It is a conversation that no entrant could answer.
    """
    whole = {**with_defaults(with_turns(given)), **given}
    return {name: value for name, value in whole.items() if name in given or name not in ASKED}


def _cell(field: str, value: object) -> object:
    """Return what a cell says; a conversation is a list, in a CSV as JSON.

    Raises:
        ConfigurationError: It is a list or an object where a text must be.
    """
    if field in FORMS:
        found = unpacked(value)
        return found if isinstance(found, list) else None
    if field == "gold_answer":
        value = in_one_text(value)
    if isinstance(value, (dict, list)):
        kind = "list" if isinstance(value, list) else "object"
        raise ConfigurationError([f"{field!r} is a {kind}, not a text"])
    return "" if is_missing(value) and not isinstance(value, str) else str(value).strip()
