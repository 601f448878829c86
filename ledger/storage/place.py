"""Check where a ledger is: on a disk with reliable locks, under one name, not moved while open.

SQLite finds the log of a file by the file's name. So a file with two names has two logs and becomes
two histories, and a file that is moved leaves its newest events behind.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ledger.errors import HardLinked, LedgerMoved, NotALedger
from ledger.storage.files import beside, wal_of

# Of what is not named here nobody knows whether its locks and flushes hold: networks, what a host
# shares with its virtual machines, and programs that store elsewhere what they are given (FUSE).
LOCAL_KINDS: Final = frozenset(
    {
        "apfs", "bcachefs", "btrfs", "ecryptfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs",
        "hfsplus", "jfs", "msdos", "nilfs2", "ntfs", "ntfs3", "reiserfs", "ubifs", "ufs", "vfat",
        "xfs", "zfs",
        "fuseblk",  # a disk of this machine, such as NTFS by ntfs-3g
        "ramfs", "rootfs", "tmpfs",  # in memory: lost with the machine, and known to be
        "aufs", "fuse.fuse-overlayfs", "overlay",  # the disk of a container
    }
)  # fmt: skip
_ROOTS: Final = frozenset({"9p", "virtiofs"})  # the disk of a sandbox (gVisor, Kata), if it is all
_MOUNTS: Final = Path("/proc/self/mounts")


def foreign_kind(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of a path's file system; None if it is a local one, or nobody knows.

    Args:
        path: A file that need not exist yet.
        mounts: The table of mounts, as Linux gives it; other systems have none.
    """
    if not mounts.exists():
        return None
    fields = (line.split() for line in mounts.read_text(errors="surrogateescape").splitlines())
    kinds = {Path(_unescaped(place)): kind for _, place, kind, *_ in fields}
    real = Path(os.path.realpath(path))
    where = next((parent for parent in (real, *real.parents) if parent in kinds), None)
    if where is None or kinds[where] in LOCAL_KINDS:
        return None
    is_own_root = where == where.parent and kinds[where] in _ROOTS
    return None if is_own_root else kinds[where]


def _unescaped(place: str) -> str:
    """Decode a mount point's path, in which spaces are octal escapes (fstab(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place)


def require_one_name(path: Path) -> None:
    """Refuse a file with hard links; a symbolic link is no second name of the file.

    Raises:
        HardLinked: It has several names.
    """
    if path.is_file() and (n_names := path.stat().st_nlink) > 1:
        raise HardLinked(path, n_names)


@contextmanager
def nothing_left_behind(path: Path, *, was_there: bool) -> Iterator[None]:
    """Remove a file that was begun and did not become a ledger, and its lock file.

    The caller holds the lock, and has closed the file when an error leaves this context.

    Args:
        path: The ledger.
        was_there: Whether there was such a file before; then it stays.
    """
    try:
        yield
    except BaseException as error:
        if not was_there:
            _remove_unused(path)
        elif isinstance(error, NotALedger) or not path.is_file():
            beside(path, ".lock").unlink(missing_ok=True)
        raise


def _remove_unused(path: Path, *others: Path) -> None:
    """Remove a ledger without events, its lock file and others; not while a process uses it.

    The last process to close a ledger removes its log. The caller holds the lock.
    """
    if not wal_of(path).exists():
        for file in (*others, beside(path, ""), beside(path, ".lock")):
            with suppress(OSError):  # an empty ledger that stays does no harm
                file.unlink(missing_ok=True)


def _identity(file: Path) -> tuple[int, int, int]:
    """Return what tells a file from others, whatever its content, and how many names it has."""
    status = file.stat()
    return status.st_nlink, status.st_ino, status.st_dev


class PlaceWatch:
    """Notices when a file is moved, deleted or replaced that must stay while a ledger is written.

    An open file can be written to after its name is gone, and nobody would find what was written.
    """

    def __init__(self, ledger: Path, *, was_there: bool = True) -> None:
        """Watch nothing yet, as for a ledger that is in memory, or only read.

        Args:
            ledger: Its path.
            was_there: Whether it was there before this process opened it.
        """
        self._ledger = ledger
        self._was_there = was_there
        self._identities: dict[Path, tuple[int, int, int]] = {}

    def add(self, file: Path) -> None:
        """Watch a file: the ledger, its log, or a lock that this process holds.

        Raises:
            OSError: It does not exist.
        """
        self._identities[file] = _identity(file)

    @property
    def is_new(self) -> bool:
        """Whether this process began the ledger, and it lies where it was begun."""
        return not self._was_there and not self.has_moved

    def remove(self) -> None:
        """Remove a ledger that has no events, and all that lies beside it, if nobody uses it."""
        _remove_unused(self._ledger, *self._identities)

    @property
    def has_moved(self) -> bool:
        """Whether a file is not what it was."""
        return self._moved() is not None

    def require_unmoved(self) -> None:
        """Refuse to write once a file is not what it was, or has a second name.

        Raises:
            LedgerMoved: It was moved, deleted or replaced.
            HardLinked: The ledger got another name.
        """
        if (moved := self._moved()) is not None:
            require_one_name(self._ledger)
            raise LedgerMoved(self._ledger, moved)

    def _moved(self) -> Path | None:
        """Return a file that is not what it was."""
        for file, identity in self._identities.items():
            try:
                if _identity(file) != identity:
                    return file
            except FileNotFoundError:
                return file
        return None
