"""Heads that were written down: on a command line, in a manifest, a report, a message."""

import re
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from ledger.head import Head

_HEAD: Final = re.compile(r"\b[0-9a-f]{64}@[0-9]{1,18}\b")


def noted_heads(name: str) -> tuple[Head, ...]:
    """Return the head that is spelt out, or all that a file has in it.

    Raises:
        ConfigurationError: The file cannot be read, or has none in it.
        NotAHead: There is no such file, and it is no head.
    """
    path = Path(name)
    if not path.is_file():
        return (Head.parse(name),)
    try:
        found = _HEAD.findall(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not found:
        raise ConfigurationError([f"{path}: there is no checkpoint in it, as DIGEST@POSITION"])
    return tuple(Head.parse(each) for each in dict.fromkeys(found))
