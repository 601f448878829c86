"""Everything that tourney raises on purpose.

TourneyError
 +- LedgerError
 |   +- NoLedger          nothing is there to be read
 |   +- NotALedger        the file is something else
 |   +- NewerFormat       written by a later tourney
 |   +- CannotRead        no permission, or damaged
 |   +- CannotWrite       no permission, no room, not there
 |   +- StaleVersion      somebody else appended first
 |   +- KeyConflict       the same key came back with other content
 |   +- UnreadableEvent   an event of no known type, version or shape
 +- (commands.errors)     configuration, consent, audits
"""

from pathlib import Path
from typing import ClassVar


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

    def __init__(self, key: str, position: int) -> None:
        super().__init__(
            f"{key} is already recorded at position {position} with other content;"
            f" compare with `tourney show {position}`"
        )
        self.key, self.position = key, position


class UnreadableEvent(LedgerError):
    """An event's type, version or shape is unknown to this tourney."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"cannot read the event at position {position}: {why}")
        self.position, self.why = position, why
