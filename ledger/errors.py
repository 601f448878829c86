"""Everything that tourney raises on purpose.

TourneyError
 +- LedgerError
 |   +- NoLedger          nothing is there to be read
 |   +- NotALedger        the file is something else
 |   +- NewerFormat       written by a later tourney
 |   +- CannotRead        no permission, or damaged
 |   +- CannotWrite       no permission, no room, not there
 |   +- FileTaken         something is there that is never written over
 |   +- DiskFailed        what was written may not be on the disk
 |   +- NetworkFileSystem locks and flushes cannot be trusted there
 |   +- StaleVersion      somebody else appended first
 |   +- KeyConflict       the same key came back with other content
 |   +- InvalidEvent      an event that could not be read back
 |   +- UnreadableEvent   an event of no known type, version or shape
 |   +- BrokenUpcasts     some older version of an event has no way to the present one
 |   +- NotAHead          no digest and position
 |   +- BrokenExport      an exported file was cut or changed
 +- (commands.errors)     configuration, consent, audits
"""

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from ledger.identity import Digest


class TourneyError(Exception):
    """The root: a message that says what, where, why and what to do, and an exit code."""

    exit_code: ClassVar[int] = 1


class LedgerError(TourneyError):
    """A ledger could not be opened, read or written."""


class NotALedger(LedgerError):
    """The file is not a tourney ledger."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is not a ledger: {why}; name another file with --ledger")
        self.path = path


class NoLedger(LedgerError):
    """There is no file where a ledger is to be read."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"there is no ledger at {path}; `tourney run` makes one, or name another with --ledger"
        )
        self.path = path


class NewerFormat(LedgerError):
    """The ledger was written by a later version of tourney."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has ledger format {found}, this tourney reads up to {known}; upgrade tourney"
        )
        self.path, self.found, self.known = path, found, known


class CannotRead(LedgerError):
    """The ledger's file cannot be read, or not to its end."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"cannot read {path}: {why}; check its permissions, or put an undamaged copy back"
        )
        self.path, self.why = path, why


class CannotWrite(LedgerError):
    """The ledger's file or folder refuses writing; what was being appended is not in it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"cannot write {path}: {why}; nothing was recorded by this step,"
            " make room or permission and run the same command again"
        )
        self.path, self.why = path, why


class FileTaken(LedgerError):
    """A ledger is to be copied to where something is already."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"cannot write {path}: there is a file of that name already; name another, or remove it"
        )
        self.path = path


class DiskFailed(LedgerError):
    """The disk did not confirm what was written; a process that was told so writes no more."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"the disk below {path} failed: {why}; whether the last step is recorded is not known:"
            " see to the disk, run `tourney verify`, then the same command again, which does"
            " nothing twice"
        )
        self.path, self.why = path, why


class StaleVersion(LedgerError):
    """A writer decided on a state that is no longer the newest."""

    def __init__(self, stream: str, *, expected: int | None, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at version {actual}, expected {expected}:"
            " another process appended to it; run the same command again"
        )
        self.stream, self.expected, self.actual = stream, expected, actual


class KeyConflict(LedgerError):
    """The same idempotency key came back with other content."""

    def __init__(
        self, key: str, position: int | None, *, recorded: Digest, offered: Digest
    ) -> None:
        super().__init__(
            f"{key} was offered twice at once, with contents {recorded[:12]} and {offered[:12]}"
            if position is None
            else f"{key} is already recorded at position {position} with content {recorded[:12]},"
            f" and was now offered with {offered[:12]}; compare with `tourney show {position}`"
        )
        self.key, self.position, self.recorded, self.offered = key, position, recorded, offered


class InvalidEvent(LedgerError):
    """An event is not what its type says, and was not appended."""

    def __init__(self, type_: str, why: str) -> None:
        super().__init__(f"{type_} was not recorded: {why}")
        self.type, self.why = type_, why


class UnreadableEvent(LedgerError):
    """An event's type, version or shape is unknown to this tourney."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"cannot read the event at position {position}: {why}")
        self.position, self.why = position, why


class BrokenUpcasts(LedgerError):
    """The program does not know how to read every version that it once wrote."""

    def __init__(
        self, *, missing: Collection[tuple[str, int]], extra: Collection[tuple[str, int]]
    ) -> None:
        super().__init__(
            f"upcasts missing for {sorted(missing)}, leading nowhere for {sorted(extra)}:"
            " each version of an event but its own needs one step to the next"
        )
        self.missing, self.extra = missing, extra


class NetworkFileSystem(LedgerError):
    """The ledger would lie where locks and flushes may not hold."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(
            f"{path} is on a network file system ({kind}), where locks and flushes may not hold and"
            " SQLite can lose or damage what was recorded; keep the ledger on a local disk,"
            " or set TOURNEY_TOURNAMENT_NETWORK_LEDGER=true if you know that yours holds them"
        )
        self.path, self.kind = path, kind


class NotAHead(LedgerError):
    """A checkpoint is spelt otherwise than tourney prints it."""

    exit_code: ClassVar[int] = 2

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:80]!r} is no checkpoint: 64 hexadecimal digits, @ and a position,"
            " as `tourney checkpoint` prints them"
        )
        self.text = text


class BrokenExport(LedgerError):
    """A file is not, or no longer, what `tourney export events` wrote."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}; export it again, or fetch it again")
        self.line, self.why = line, why


class FolderTaken(LedgerError):
    """A folder is to be written that holds something already."""

    exit_code: ClassVar[int] = 2

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is there already; name another folder, or move that one away")
        self.folder = folder
