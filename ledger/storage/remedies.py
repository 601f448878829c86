"""Remedies for failed writes, by the error name of the system or of SQLite."""

from errno import errorcode
from pathlib import Path
from typing import Final

from ledger.errors import CannotWrite

_REMEDIES: Final = (
    (("ENOSPC", "EDQUOT", "SQLITE_FULL"), "free disk space"),
    (
        ("EACCES", "EPERM", "SQLITE_PERM", "SQLITE_READONLY"),
        "fix the permissions of the file and its folder",
    ),
    (("EROFS",), "choose a file system that can be written"),
    (("ENOENT", "EEXIST", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "ELOOP"), "correct the path"),
    (("SQLITE_CANTOPEN",), "check that its folder exists and can be written"),
    (("SQLITE_BUSY",), "wait for the program that uses it"),
)


def cannot_write(path: Path, error: Exception) -> CannotWrite:
    """Return the error of a write that the system or SQLite refused, with what to do about it."""
    said = getattr(error, "strerror", None) or str(error)  # without the path of a draft
    return CannotWrite(path, said, _remedy(error))


def _remedy(error: Exception) -> str:
    number = getattr(error, "errno", None)
    name = getattr(error, "sqlite_errorname", None) or errorcode.get(number or 0, "")
    return next(
        (remedy for names, remedy in _REMEDIES if name.startswith(names)),
        "check the disk and its permissions",
    )
