"""A terminal, and somebody at it who answers the question that a command asks."""

import os
import pty
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.command_line.warm import begin
from tests.support.patience import PATIENCE_S

ASKED: Final = "[y/N]: "
_REPAINTED_S: Final = 0.35  # a bar is painted ten times a second


class Answered(NamedTuple):
    """What was on the terminal before the answer and after it, and how the command ended."""

    code: int
    before: str
    after: str


def run_at_terminal(
    folder: Path,
    words: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    answer: bytes,
    asked: str = ASKED,
    thinks: bool = False,
) -> Answered:
    """Run a command at a terminal, and type an answer when it asks, or think a while before."""
    ours, theirs = pty.openpty()
    command = begin(folder, words, {**environment, "TERM": "xterm"}, terminal=os.ttyname(theirs))
    before = _read(ours, PATIENCE_S, until=asked.encode())
    if thinks:
        before += _read(ours, _REPAINTED_S)
    os.close(theirs)
    if asked not in before:
        command.kill()
        return Answered(-1, before, "")
    os.write(ours, answer)
    after = _read(ours, PATIENCE_S)
    os.close(ours)
    return Answered(command.wait().code, before, after)


def _read(terminal: int, seconds: float, *, until: bytes | None = None) -> str:
    """Read so long, or until something is said, or until nobody writes there any more."""
    said, end_at = b"", time.monotonic() + seconds
    while (left_s := end_at - time.monotonic()) > 0 and (until is None or until not in said):
        if select.select([terminal], [], [], left_s)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:  # the command has ended
                break
    return said.decode(errors="replace")
