"""A small ledger that was published, for commands that need no weights."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledger.chain import Head
from ledger.store import Ledger
from tests.support.command_line.launching import Completed

ROOT = Path(__file__).parents[3]


def head_of(path: Path) -> Head:
    """Return a ledger's head."""
    with Ledger.read_only(path) as ledger:
        return ledger.head


def fields(done: Completed) -> dict[str, Any]:
    """Return what a command printed as JSON."""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def started(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start the command line in a folder, and let it go on."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "tourney", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509  # tests start no thread
    )


def _hear_interrupts() -> None:
    """Undo what a shell does to those it starts in the background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
