"""The command line as a user calls it, and a small tournament to call it in."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from commands.settings.starting.demo import lay_out_demo
from tests.support.command_line.warm import run_warm

Completed: TypeAlias = "subprocess.CompletedProcess[str]"
Tourney: TypeAlias = Callable[..., Completed]

N_PROMPTS = 8


def lay_out_small(folder: Path) -> Path:
    """Lay out the quickstart with its first prompts only."""
    lay_out_demo(folder)
    bank = folder / "bank.jsonl"
    lines = bank.read_text(encoding="utf-8").splitlines(keepends=True)
    bank.write_text("".join(lines[:N_PROMPTS]), encoding="utf-8")
    return folder


def launch(
    folder: Path, *arguments: str, prefix: Sequence[str] = (), room: int | None = None
) -> Completed:
    """Run the command line in a folder.

    Args:
        folder: Where.
        arguments: The command and its options.
        prefix: A program that runs it, as setpriv.
        room: How many bytes it may write to a file, where no program runs it.
    """
    if not prefix:
        code, out, err = run_warm(folder, arguments, os.environ, room=room)
        return subprocess.CompletedProcess(arguments, code, out, err)
    return subprocess.run(
        [*prefix, sys.executable, "-m", "tourney", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
