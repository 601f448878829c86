"""A small ledger that was published, for commands that need no weights."""

import json
from pathlib import Path
from typing import Any

from ledger.chain import Head
from ledger.store import Ledger
from tests.support.command_line.launching import Completed, launch

ROOT = Path(__file__).parents[3]


def head_of(path: Path) -> Head:
    """Return a ledger's head."""
    with Ledger.read_only(path) as ledger:
        return ledger.head


def fields(done: Completed) -> dict[str, Any]:
    """Return what a command printed as JSON."""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def said(folder: Path, *words: str) -> Any:  # noqa: ANN401  # JSON
    """Return the JSON that a command prints, which succeeds."""
    done = launch(folder, *words, "--json")
    assert done.returncode == 0, done.stderr
    return fields(done)
