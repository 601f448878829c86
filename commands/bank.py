"""Reading a prompt bank: one JSON object a line."""

import json
from pathlib import Path
from typing import get_args

import msgspec

from commands.errors import ConfigurationError
from commands.validation import place_and_fault
from ledger.events.registration import Prompt


def read_bank(path: Path) -> tuple[Prompt, ...]:
    """Read every prompt; `_provenance` may say where one comes from and is not kept.

    Raises:
        ConfigurationError: The file is missing or empty, or lines are not prompts or repeat an
            id; all faults are listed, each with its line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path}: the prompt bank cannot be read: {error}"]) from error
    prompts: list[Prompt] = []
    faults: list[str] = []
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompt = _prompt(line)
        except ValueError as error:
            faults.append(f"{path}:{number}: {error}")
            continue
        first = first_lines.setdefault(prompt.prompt_id, number)
        if first != number:
            faults.append(
                f"{path}:{number}: prompt_id {prompt.prompt_id!r} is taken by line {first};"
                " give each prompt its own"
            )
        prompts.append(prompt)
    if not prompts and not faults:
        faults.append(f"{path}: the prompt bank is empty; it holds one JSON object a line")
    if faults:
        raise ConfigurationError(faults)
    return tuple(prompts)


def _prompt(line: str) -> Prompt:
    """Read one line.

    Raises:
        ValueError: It is not JSON, not UTF-8 when written again, or not a prompt.
    """
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(record, dict):
        raise ValueError(f"a prompt is a JSON object, this is {type(record).__name__}")  # noqa: TRY004  # a fault of the file, not of the program
    record.pop("_provenance", None)
    try:
        prompt = msgspec.convert(record, Prompt)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ValueError(f"{place!r}: {why}{_choices(place)}" if place else why) from error
    msgspec.json.encode(prompt)
    return prompt


def _choices(field: str) -> str:
    """Name what a field may be, where that is a list."""
    kinds = {each.name: get_args(each.type) for each in msgspec.structs.fields(Prompt)}
    literals = [value for kind in kinds.get(field, ()) for value in get_args(kind)]
    return f", it is one of {', '.join(map(repr, literals))}" if literals else ""
