"""Making evaluations as settings do, and what is wrong with them."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import evaluation_of
from commands.settings.sections import EvaluationSection
from ledger.events.registration import Prompt

Kind = TypeVar("Kind", bound=Evaluation)


def make(uses: str, folder: Path, bank: Sequence[Prompt] = (), **parameters: object) -> Evaluation:
    """Return the evaluation that a table with the id "one" names."""
    section = EvaluationSection.model_validate(
        {"id": "one", "uses": uses, "parameters": parameters}
    )
    return evaluation_of(section, folder, bank)


def made(
    uses: str, kind: type[Kind], folder: Path, bank: Sequence[Prompt] = (), **parameters: object
) -> Kind:
    """Return it, of the class that it should be of."""
    evaluation = make(uses, folder, bank, **parameters)
    assert isinstance(evaluation, kind)
    return evaluation


def refusals(
    uses: str, folder: Path, bank: Sequence[Prompt] = (), **parameters: object
) -> tuple[str, ...]:
    """Return why there is none, without the folder's name."""
    with pytest.raises(ConfigurationError) as caught:
        make(uses, folder, bank, **parameters)
    return tuple(fault.replace(f"{folder}/", "") for fault in caught.value.faults)


def write_lines(file: Path, *rows: object) -> Path:
    """Write a data set: a text stays as it is, all else becomes JSON."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    content = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file
