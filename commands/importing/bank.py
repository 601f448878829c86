"""Read the bank that [prompts] bank names: a file, or a data set of the Hugging Face Hub."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from commands.errors import ConfigurationError
from commands.importing.formats.rows import PROMPT_COLUMNS, Sheet
from commands.importing.prompts import ASKED, columns_by_field, prompts_of_rows
from commands.settings.hub_dataset import HubDataset, hub_dataset
from commands.settings.inputs import prompts_in, read_bank
from commands.settings.toml import from_home
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
