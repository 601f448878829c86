"""Write files completely or not at all, flush them, and say what to do if that is refused."""

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from errno import errorcode
from pathlib import Path
from stat import S_IFREG
from typing import Final

from ledger.errors import CannotWrite, FolderTaken


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files, completely or not at all, whenever the power fails.

    Raises:
        FolderTaken: The folder has files already.
        CannotWrite: It cannot be written; nothing is left behind.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise FolderTaken(folder)
    draft = folder.with_name(f".{folder.name}.draft")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        for name, content in files.items():
            file = draft / name
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, [content])
        for within in (draft, *(path for path in draft.rglob("*") if path.is_dir())):
            flush(within)
        draft.rename(folder)
        flush(folder.parent)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise cannot_write(folder, error) from error


def write_whole(file: Path, lines: Iterable[bytes]) -> None:
    """Write a file completely and flush it, or leave it as it was; a symbolic link stays one.

    A pipe or a device is written to directly.

    Raises:
        CannotWrite: It cannot be written; no file is left behind.
    """
    try:
        if not file.name or file.is_dir():
            raise CannotWrite(file, "it is a folder; name a file")
        if file.exists() and not file.is_file():
            _write(file, lines)
        else:
            _replace(Path(os.path.realpath(file)), lines)  # resolve() fails at a loop
    except OSError as error:
        raise cannot_write(file, error) from error


def _replace(file: Path, lines: Iterable[bytes]) -> None:
    draft = file.with_name(f".{file.name}.draft")
    try:
        _write(draft, lines)
        draft.replace(file)
        flush(file.parent)
    finally:
        with suppress(OSError):  # it became the file, or there is no such folder
            draft.unlink()


def _write(file: Path, lines: Iterable[bytes]) -> None:
    with file.open("wb") as opened:
        opened.writelines(lines)
        if file.is_file():  # a pipe cannot be flushed
            opened.flush()
            os.fsync(opened.fileno())


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file's companion: beside the real file, even through a symbolic link."""
    return Path(f"{os.path.realpath(path)}{suffix}")


def create(path: Path) -> None:
    """Create an empty file with the rights that the umask leaves; SQLite lets no group write.

    No handle is opened: closing one would release this process's locks on the file.
    """
    with suppress(OSError):  # it is there, or SQLite will say why it cannot be
        os.mknod(path, S_IFREG | 0o666)


def wal_of(path: Path) -> Path:
    """Return the path of a ledger's write-ahead log (WAL), which holds its newest events."""
    return beside(path, "-wal")


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder; a new file needs both."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
