"""Commands run by a process with the heavy imports done, which forks for each: none starts cold.

Orders go as lines of JSON to its standard input, exit codes come as lines from its standard
output. It ends when its input does.
"""

import atexit
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec


class Order(msgspec.Struct, frozen=True):
    """A command to be run, and where what it says goes."""

    words: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    out: str
    err: str


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run_warm(folder: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> Ended:
    """Run the command line in a folder, without a terminal."""
    with TemporaryDirectory(prefix="said-") as said:
        out, err = Path(said) / "out", Path(said) / "err"
        order = Order(words, str(folder), dict(environment), str(out), str(err))
        process = _stove()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        return Ended(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@cache
def _stove() -> "subprocess.Popen[bytes]":
    """Begin the process, once; it ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.commands.cli.stove"],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.kill)
    return process
