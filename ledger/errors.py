"""Everything that tourney raises on purpose.

TourneyError
 +- LedgerError
 |   +- NoLedger          nothing is there to be read
 |   +- NotALedger        the file is something else
 |   +- NewerFormat       written by a later tourney
 |   +- AlteredSchema     its tables or triggers are not as tourney makes them
 |   +- CannotRead        no permission, or damaged
 |   +- CannotWrite       no permission, no room, not there
 |   +- FileTaken         something is there that is never written over
 |   +- ChangedMeanwhile  somebody wrote while the file was read as it lay
 |   +- DiskFailed        what was written may not be on the disk
 |   +- NetworkFileSystem locks and flushes cannot be trusted there
 |   +- HardLinked        the file has a second name
 |   +- LedgerMoved       the file was moved or deleted while it was written
 |   +- StaleVersion      somebody else appended first
 |   +- KeyConflict       the same key came back with other content
 |   +- InvalidEvent      an event that could not be read back
 |   +- FromTheFuture     an event of another ledger, dated after today
 |   +- UnreadableEvent   an event of no known type, version or shape
 |   +- BrokenUpcasts     some older version of an event has no way to the present one
 |   +- CannotRedact      an event whose texts must stay, or that has none
 |   +- NotErased         redacted, and the file may still hold the old bytes
 |   +- NotAHead          no digest and position
 |   +- BrokenExport      an exported file was cut or changed
 +- (commands.errors)     configuration, consent, audits
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import ClassVar, Final

from ledger.identity import Digest


class TourneyError(Exception):
    """The root of all errors; its message says what is wrong and what to do."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Reach another process with the message and the fields."""
        return BaseException.__new__, (type(self), *self.args), self.__dict__


_LONG: Final = 300  # characters: SQLite quotes whole texts
_CHECK_OR_RESTORE: Final = "check its permissions, or restore an undamaged copy"


class LedgerError(TourneyError):
    """A ledger could not be opened, read or written."""


class NotALedger(LedgerError):
    """The file is not a tourney ledger."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is not a ledger: {why}; name another file, or restore a backup of it"
        )
        self.path = path


class NoLedger(LedgerError):
    """There is no ledger to read."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"there is no ledger at {path}; `tourney run` makes one, or name another file"
        )
        self.path = path


class NewerFormat(LedgerError):
    """The ledger was written by a later version of tourney."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has ledger format {found}, this tourney reads up to {known}; upgrade tourney"
        )
        self.path, self.found, self.known = path, found, known


class AlteredSchema(LedgerError):
    """The ledger's tables, indexes, views or triggers are not as tourney makes them."""

    def __init__(self, path: Path, whys: Iterable[str]) -> None:
        super().__init__(
            f"{path} was altered: {'; '.join(whys)}; nothing was appended: remove foreign objects"
            " with an SQLite tool (DROP TRIGGER, DROP TABLE), or restore a backup"
        )
        self.path = path


class CannotRead(LedgerError):
    """The ledger's file cannot be read, or not completely."""

    def __init__(self, path: Path, why: str, *, is_damaged: bool = False) -> None:
        what = f"{path} is damaged" if is_damaged else f"cannot read {path}"
        remedy = "restore a backup" if is_damaged else _CHECK_OR_RESTORE
        self.path, self.why = path, " ".join(why.split())[:_LONG]  # SQLite quotes whole views
        super().__init__(f"{what}: {self.why}; {remedy}")


class ChangedMeanwhile(LedgerError):
    """The ledger was read as it lay, without locks, and somebody wrote to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another program wrote to {path} meanwhile: run the same command again")
        self.path = path


class CannotWrite(LedgerError):
    """The ledger's file or folder cannot be written; the append recorded nothing."""

    def __init__(self, path: Path, why: str, remedy: str = "") -> None:
        again = f"{remedy}, then run the command again" if remedy else "run the command again"
        super().__init__(f"cannot write {path}: {why}; this step recorded nothing: {again}")
        self.path, self.why = path, why


class FileTaken(LedgerError):
    """A copy of a ledger would overwrite an existing file."""

    def __init__(self, path: Path) -> None:
        remedy = "choose another name, or remove this file"
        if path.is_dir():  # perhaps with earlier copies in it
            remedy = "it is a folder: name a file in it"
        super().__init__(f"{path} exists already; {remedy}")
        self.path = path


class DiskFailed(LedgerError):
    """The disk did not confirm a write: the append may come to light when the file is opened."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the disk failed while {path} was written: {why}; the last step may or may not be"
            " recorded: check the disk, run `tourney verify`, then run the same command again;"
            " it repeats nothing that was recorded"
        )
        self.path, self.why = path, why


class StaleVersion(LedgerError):
    """Another writer appended to the stream after this one read it."""

    def __init__(self, stream: str, *, expected: int | None, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at version {actual}, expected {expected}:"
            " another process appended to it; run the same command again"
        )
        self.stream, self.expected, self.actual = stream, expected, actual


class KeyConflict(LedgerError):
    """An event has the idempotency key of a recorded one, but other content."""

    def __init__(
        self, key: str, position: int | None, *, recorded: Digest, offered: Digest
    ) -> None:
        super().__init__(
            f"one append has the key {key} twice, with contents {recorded[:12]} and {offered[:12]}"
            if position is None
            else f"{key} is already recorded at position {position} with content {recorded[:12]},"
            f" and the new content is {offered[:12]}; compare with `tourney log {position}`"
        )
        self.key, self.position, self.recorded, self.offered = key, position, recorded, offered


class InvalidEvent(LedgerError):
    """An event does not match its type, and was not appended."""

    def __init__(self, type_: str, why: str) -> None:
        super().__init__(f"{type_} was not recorded: {why}")
        self.type, self.why = type_, why


class FromTheFuture(LedgerError):
    """An event of another ledger is dated far after this machine's clock."""

    def __init__(self, position: int, recorded_at: str, now: str) -> None:
        super().__init__(
            f"the other ledger's event at position {position} is dated {recorded_at}, but this"
            f" machine's clock says {now}; nothing was merged, since later events would get that"
            " date: set the wrong clock, and record the other ledger again if it was its clock"
        )
        self.position = position


class UnreadableEvent(LedgerError):
    """An event's type, version or shape is unknown to this tourney."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(
            f"cannot read the event at position {position}: {why}; if `tourney verify` finds the"
            " ledger damaged, restore a backup"
        )
        self.position, self.why = position, why


class BrokenUpcasts(LedgerError):
    """The program cannot read every event version that it once wrote."""

    def __init__(
        self, *, missing: Collection[tuple[str, int]], extra: Collection[tuple[str, int]]
    ) -> None:
        super().__init__(
            f"missing upcasts: {sorted(missing)}; unknown upcasts: {sorted(extra)}:"
            " each older version of an event needs one upcast to the next version"
        )
        self.missing, self.extra = missing, extra


class CannotRedact(LedgerError):
    """An event cannot be redacted; nothing was changed."""

    exit_code: ClassVar[int] = 2

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"cannot redact position {position}: {why}")
        self.position, self.why = position, why


class NotErased(LedgerError):
    """A redaction is recorded, and the bytes that it removed may still be in the file."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the redaction is recorded, but {path} or its -wal may still hold the old bytes:"
            f" {why}; end programs that read it, or free disk space, then run the command again"
        )
        self.path, self.why = path, why


class NetworkFileSystem(LedgerError):
    """The ledger would be on a file system that is not known to be local: a network's, mostly."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(
            f"{path} is on a network file system, or on one that tourney does not know ({kind}):"
            " where locks and flushes are unreliable, SQLite can lose or damage events; keep the"
            " ledger on a local disk, or set TOURNEY_NETWORK_LEDGER=true if you know"
            " that yours is reliable"
        )
        self.path, self.kind = path, kind


class HardLinked(LedgerError):
    """The ledger's file has several names, each of which would get a history of its own."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path, n_names: int) -> None:
        super().__init__(
            f"{path} has {n_names} hard links: each name would get a history of its own; this step"
            " recorded nothing: make a copy with `tourney backup FILE` and use that, or remove the"
            " other links"
        )
        self.path, self.n_names = path, n_names


class LedgerMoved(LedgerError):
    """A file that must stay in its place while the ledger is written is not there any more."""

    def __init__(self, path: Path, gone: Path) -> None:
        super().__init__(
            f"{gone} was moved, deleted or replaced while {path} was being written; this step"
            " recorded nothing, and everything recorded before is in the moved file once this"
            " process has ended: put it back, then run the same command again"
        )
        self.path, self.gone = path, gone


class NotAHead(LedgerError):
    """A text is not a head hash as tourney prints it."""

    exit_code: ClassVar[int] = 2

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} is not a head hash: expected 64 hexadecimal digits, @ and a position,"
            " as `tourney verify` prints it"
        )
        self.text = text


class BrokenExport(LedgerError):
    """A file is not an export of events, or was changed."""

    def __init__(self, line: int, why: str, begin: str = "") -> None:
        super().__init__(f"{begin}line {line}: {why}; export or download the file again")
        self.line, self.why = line, why


class FolderTaken(LedgerError):
    """A folder to be written holds files already."""

    exit_code: ClassVar[int] = 2

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} exists already; choose another folder, or move this one away")
        self.folder = folder
