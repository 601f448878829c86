"""Heads that were written down: on a command line, in a manifest, a report, a message."""

from errno import EISDIR, ENAMETOOLONG, ENOENT
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError
from ledger.chain import Head, heads_in

_NO_SUCH_FILE: Final = frozenset({ENOENT, EISDIR, ENAMETOOLONG})


def noted_heads(name: str) -> tuple[Head, ...]:
    """Return the head that is spelt out, or all that a file has in it.

    Raises:
        ConfigurationError: The file cannot be read, or has none in it.
        NotAHead: There is no such file, and it is no head.
    """
    path = Path(name)
    try:
        found = heads_in(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return (Head.parse(name),)
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not found:
        raise ConfigurationError([f"{path}: there is no checkpoint in it, as DIGEST@POSITION"])
    return found
