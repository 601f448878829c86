"""Disks that tests can look at, and one that notes every operation that changes a file.

It notes below SQLite, as its VFS. The side file -shm is memory and passes by unnoted: a power loss
leaves nothing of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import apsw
from typing_extensions import Buffer, override

from ledger.storage.wal import NoWal


@dataclass
class Disk(NoWal):
    """A log whose flushes are counted; something happens before each is over."""

    meanwhile: Callable[[], object]
    n_flushes: int = 0

    @override
    def flush(self) -> None:
        """Take as long as what happens meanwhile."""
        self.meanwhile()
        self.n_flushes += 1


_JOURNALS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


class Create(NamedTuple):
    """A file was made under a name."""

    file: int
    name: str


class Delete(NamedTuple):
    """A name was taken away."""

    name: str


class Write(NamedTuple):
    """Bytes were put somewhere in a file."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file was cut to a size."""

    file: int
    size: int


class Sync(NamedTuple):
    """All of a file was forced to the disk."""

    file: int


class SyncFolder(NamedTuple):
    """All names were forced to the disk."""


Operation = Create | Delete | Write | Truncate | Sync | SyncFolder


class RecordingDisk(apsw.VFS):
    """A folder on the real disk, with a log of every operation that changes it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")  # "" is the platform's own VFS, which does the work
        self.name = name
        self.log: list[Operation] = []
        self._files: dict[str, int] = {}
        self._n_files = 0

    @override
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file, and create it in the log where it is new."""
        if name is None:  # a temporary file
            return super().xOpen(name, flags)
        label = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        is_new = label not in self._files
        if is_new:
            self._n_files += 1
            self._files[label] = self._n_files
            self.log.append(Create(self._n_files, label))
        owes_folder = bool(flags[0] & _JOURNALS) and bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        return _RecordingFile(name, flags, self._files[label], self.log, owes_folder=owes_folder)

    def sync(self, label: str) -> None:
        """Note that a process forced a file to the disk past SQLite."""
        self.log.append(Sync(self._files[label]))

    @override
    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete a file."""
        super().xDelete(filename, syncdir)
        del self._files[Path(filename).name]
        self.log.append(Delete(Path(filename).name))
        if syncdir:
            self.log.append(SyncFolder())


class _RecordingFile(apsw.VFSFile):
    def __init__(
        self,
        name: str | apsw.URIFilename | None,
        flags: list[int],
        file: int,
        log: list[Operation],
        *,
        owes_folder: bool,
    ) -> None:
        super().__init__("", name, flags)
        self._file, self._log, self._owes_folder = file, log, owes_folder

    @override
    def xWrite(self, data: Buffer, offset: int) -> None:
        super().xWrite(data, offset)
        self._log.append(Write(self._file, offset, bytes(data)))

    @override
    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._log.append(Truncate(self._file, newsize))

    @override
    def xSync(self, flags: int) -> None:
        """Note it only: the disk below is not the one that loses power.

        SQLite's unix VFS syncs the folder, too, when it first syncs a journal or WAL it opened.
        """
        self._log.append(Sync(self._file))
        if self._owes_folder:
            self._log.append(SyncFolder())
            self._owes_folder = False
