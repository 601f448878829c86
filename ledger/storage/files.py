"""Write files completely or not at all, flush them, and detect network file systems.

On a network file system neither locks nor flushes are reliable.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ledger.errors import CannotWrite, FolderTaken


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files, completely or not at all.

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
            file.write_bytes(content)
        draft.rename(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise CannotWrite(folder, str(error)) from error


def write_whole(file: Path, lines: Iterable[bytes]) -> None:
    """Write a file completely, or leave it as it was; a symbolic link stays one.

    A pipe or a device is written to directly.

    Raises:
        CannotWrite: It cannot be written; no file is left behind.
    """
    try:
        if not file.name or file.is_dir():
            raise CannotWrite(file, "it is a folder")
        if file.exists() and not file.is_file():
            _write(file, lines)
        else:
            _replace(Path(os.path.realpath(file)), lines)  # resolve() fails at a loop
    except OSError as error:
        raise CannotWrite(file, str(error)) from error


def _replace(file: Path, lines: Iterable[bytes]) -> None:
    draft = file.with_name(f".{file.name}.draft")
    try:
        _write(draft, lines)
        draft.replace(file)
    finally:
        with suppress(OSError):  # it became the file, or there is no such folder
            draft.unlink()


def _write(file: Path, lines: Iterable[bytes]) -> None:
    with file.open("wb") as opened:
        opened.writelines(lines)


NETWORK_KINDS: Final = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gfs2", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs",
        "wekafs",
    }
)  # fmt: skip
_MOUNTS: Final = Path("/proc/self/mounts")


def network_kind(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of network file system a path is on; None if it is local or unknown.

    Args:
        path: A file that need not exist yet.
        mounts: The table of mounts, as Linux gives it; other systems have none.
    """
    if not mounts.exists():
        return None
    fields = (line.split() for line in mounts.read_text(errors="surrogateescape").splitlines())
    kinds = {Path(_unescaped(place)): kind for _, place, kind, *_ in fields}
    where = Path(os.path.realpath(path))
    kind = next((kinds[each] for each in (where, *where.parents) if each in kinds), None)
    return kind if kind in NETWORK_KINDS else None


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file's companion: beside the real file, even through a symbolic link."""
    return Path(f"{os.path.realpath(path)}{suffix}")


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder; a new file needs both."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unescaped(place: str) -> str:
    """Decode a mount point's path, in which spaces are octal escapes (fstab(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place)
