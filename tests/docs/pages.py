"""The pages that people read, and the marked blocks in them that tests run.

A line `<!-- demo -->` above a block says that it runs in the demo's folder; `<!-- file: NAME -->`
that it is a file of the tutorial, `<!-- own -->` that it runs in the folder of those files, and
`<!-- prices -->` that it is a price table. `<!-- judged -->` says that it runs in a small demo with
the files of the page on evaluations, `<!-- checked -->` in the tournament of `checked`.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.command_line.warm import run_warm

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
WIDTH: Final = 100  # columns of a session
PAGES: Final = (README, *sorted(DOCS.glob("*.md")))

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PROMPT: Final = re.compile(r"^\$ (.*)\n", re.MULTILINE)
_CODE: Final = re.compile(r"`(tourney [^`]+)`")


class Block(NamedTuple):
    """A block of code on a page."""

    page: Path
    mark: str  # what the comment above it says; empty: there is none
    language: str
    text: str


class Step(NamedTuple):
    """A line that is typed in a console session, and what it shows."""

    line: str
    output: str

    @property
    def command(self) -> str:
        """What is typed, without the remark behind it."""
        return self.line.partition(" #")[0].rstrip()


def blocks(*pages: Path) -> list[Block]:
    """List the blocks of some pages, in order."""
    return [
        Block(page, found["mark"] or "", found["language"], found["text"])
        for page in pages
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def steps(session: str) -> list[Step]:
    """Split a console session at its prompts."""
    parts = _PROMPT.split(session)[1:]
    return [Step(*step) for step in zip(parts[::2], parts[1::2], strict=True)]


def named_commands(page: Path) -> Iterator[str]:
    """Yield the command lines of a page: in sessions, in scripts and in sentences."""
    for block in blocks(page):
        if block.language == "console":
            yield from (step.command for step in steps(block.text))
        elif block.language == "bash":
            yield from (line.partition(" #")[0] for line in block.text.splitlines())
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    yield from (" ".join(code.split()) for code in _CODE.findall(prose))


def shown(folder: Path, command: str) -> str:
    """Run a command of a session in a folder, and return its standard output."""
    program, *words = shlex.split(command)
    assert program == "tourney", command
    done = run_warm(folder, tuple(words), {**os.environ, "COLUMNS": str(WIDTH)})
    assert done.code == 0, done.err
    return done.out


def masked(text: str) -> list[str]:
    """Return the lines without what differs from machine to machine: figures and spaces.

    A list of prompts counts as one, and ranks from 1 to 2 as one rank: a test has fewer prompts.
    """
    lines = (re.sub(r"[0-9a-f]{64}|[\d.]+", "0", line) for line in text.splitlines())
    lines = (re.sub(r"\b0-0\b", "0", line) for line in lines)
    lines = (re.sub(r"(recall|vignette)_0(, (\w+_)?0)*", "PROMPTS", line) for line in lines)
    return [" ".join(line.split()) for line in lines if line.strip()]


def require_as_shown(session: Block, folder: Path) -> None:
    """Run the commands of a session in a folder, and compare what they print with the page."""
    for step in steps(session.text):
        assert masked(shown(folder, step.command)) == masked(step.output), step.line
