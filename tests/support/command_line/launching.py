"""The command line as a user calls it, and a small tournament to call it in."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from commands.settings.inputs import shipped_data
from commands.settings.starting import lay_out_demo
from tests.support.command_line.warm import run_warm

Completed: TypeAlias = "subprocess.CompletedProcess[str]"
Tourney: TypeAlias = Callable[..., Completed]

N_PROMPTS = 8
_N_BEFORE = 58  # prompts of the shipped bank: behind them many answers differ


def lay_out_small(folder: Path) -> Path:
    """Lay out the quickstart with its first prompts only."""
    lay_out_demo(folder)
    bank = folder / "bank.jsonl"
    lines = bank.read_text(encoding="utf-8").splitlines(keepends=True)
    bank.write_text("".join(lines[:N_PROMPTS]), encoding="utf-8")
    return folder


def lay_out_recorded(folder: Path, n_prompts: int) -> Path:
    """Lay out the demo of recorded answers, on a part of its bank."""
    lay_out_demo(folder, weights=False)
    bring_prompts(folder, n_prompts)
    return folder


def bring_prompts(folder: Path, n: int) -> None:
    """Write so many prompts of the shipped bank into a folder's."""
    with (shipped_data() / "bank.jsonl").open(encoding="utf-8") as prompts:
        bank = "".join(islice(prompts, _N_BEFORE, _N_BEFORE + n))
    (folder / "bank.jsonl").write_text(bank, encoding="utf-8")


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


def done(folder: Path, *words: str, code: int = 0) -> Completed:
    """Run a command that ends so."""
    ended = launch(folder, *words)
    assert ended.returncode == code, ended.stderr + ended.stdout
    return ended


def change(file: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
