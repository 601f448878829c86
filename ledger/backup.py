"""A copy of a ledger while it is being written to; `cp` would leave out what the WAL holds."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Final

from ledger.connection import translated
from ledger.errors import CannotWrite, FileTaken
from ledger.file_system import flush
from ledger.store import Ledger

_UNFINISHED: Final = ".unfinished"


def back_up(ledger: Ledger, to: Path) -> None:
    """Copy a ledger as it stands into a new file, which needs no other beside it.

    Raises:
        FileTaken: Something is there already.
        CannotWrite: There is no room or permission.
        DiskFailed: It cannot be told whether what was copied is on the disk.
    """
    copied = to.with_name(f"{to.name}.{token_hex(4)}{_UNFINISHED}")  # of no other backup
    with translated(to, CannotWrite):
        if to.exists():
            raise FileTaken(to)
        try:
            with closing(sqlite3.connect(copied)) as copy:
                ledger.connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            ledger.flush()
            flush(copied)
            _name(copied, to)
            flush(to.parent)
        finally:
            copied.unlink(missing_ok=True)


def unfinished(to: Path) -> tuple[Path, ...]:
    """Return what lies there of backups to a name that were killed, or are being made."""
    beginning = f"{to.name}."
    beside = sorted(to.parent.iterdir())
    return tuple(
        each for each in beside if each.name.startswith(beginning) and _UNFINISHED in each.name
    )


def _name(copied: Path, to: Path) -> None:
    """Give a copy its name; unlike a rename, never over a file that came meanwhile."""
    try:
        _link_or_claim(copied, to)
    except FileExistsError as error:
        raise FileTaken(to) from error


def _link_or_claim(copied: Path, to: Path) -> None:
    try:
        os.link(copied, to)  # whole at once
    except FileExistsError:
        raise
    except OSError:  # FAT and many a mount have no hard links
        os.close(os.open(to, os.O_CREAT | os.O_EXCL))
        copied.replace(to)
