"""A full disk is told apart from a missing permission and from a wrong path."""

import os
import sqlite3
from errno import EACCES, EDQUOT, EIO, ENOENT, ENOSPC, EROFS
from pathlib import Path

import pytest

from ledger.storage.files import cannot_write


def of_sqlite(name: str) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(ENOSPC, "No space left on device"), "free disk space"),
        (OSError(EDQUOT, "Disk quota exceeded"), "free disk space"),
        (of_sqlite("SQLITE_FULL"), "free disk space"),
        (OSError(EACCES, "Permission denied"), "fix the permissions of the file and its folder"),
        (of_sqlite("SQLITE_READONLY_DIRECTORY"), "fix the permissions of the file and its folder"),
        (OSError(EROFS, "Read-only file system"), "choose a file system that can be written"),
        (OSError(ENOENT, "No such file or directory"), "correct the path"),
        (of_sqlite("SQLITE_CANTOPEN"), "check that its folder exists and can be written"),
        (of_sqlite("SQLITE_BUSY"), "wait for the program that uses it"),
        (OSError(EIO, os.strerror(EIO)), "check the disk and its permissions"),
        (sqlite3.OperationalError("no code"), "check the disk and its permissions"),
    ],
)
def test_each_failure_has_its_own_remedy(error: Exception, remedy: str) -> None:
    """Who frees disk space for want of a permission loses an hour, and perhaps a file."""
    said = str(cannot_write(Path("x.db"), error))

    assert said.endswith(f"recorded nothing: {remedy}, then run the command again")
