"""A copy of a ledger while it is being written to; `cp` would leave out what the WAL holds."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ledger.connection import translated
from ledger.errors import CannotWrite, FileTaken
from ledger.file_system import flush
from ledger.store import Ledger


def back_up(ledger: Ledger, to: Path) -> None:
    """Copy a ledger as it stands into a new file, which needs no other beside it.

    Raises:
        FileTaken: Something is there already.
        CannotWrite: There is no room or permission.
    """
    unfinished = to.with_name(f"{to.name}.unfinished")
    with translated(to, CannotWrite):
        if to.exists():
            raise FileTaken(to)
        unfinished.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(unfinished)) as copy:
                ledger.connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            flush(unfinished)
            _name(unfinished, to)
            flush(to.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def _name(unfinished: Path, to: Path) -> None:
    try:
        os.link(unfinished, to)  # unlike a rename, never over a file that came meanwhile
    except FileExistsError as error:
        raise FileTaken(to) from error
