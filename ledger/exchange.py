r"""Copies of a ledger: a backup file, and an export as lines of JSON.

An export can be shared, and read without SQLite. Payloads are JSON strings, so that any parser
keeps their bytes. The last line holds the head and the digest of all bytes before it, so a
truncated or changed file is detected.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from typing import Final, Literal, TypeVar

import msgspec

from ledger.chain import GENESIS, Head, leaf_hash, link_hash
from ledger.errors import BrokenExport, CannotWrite, FileTaken
from ledger.identity import Digest
from ledger.recorded import StoredEvent
from ledger.storage.connection import translated_errors
from ledger.storage.files import beside, create, flush
from ledger.store import Ledger

_UNFINISHED: Final = ".unfinished"


def back_up(ledger: Ledger, to: Path) -> None:
    """Copy a ledger, even while it is being written, into a new self-contained file.

    Raises:
        FileTaken: The file exists already.
        CannotWrite: There is no room or no permission.
        ChangedMeanwhile: Somebody wrote to the ledger, which this user reads without locks.
    """
    with translated_errors(to, CannotWrite):
        if to.exists():
            raise FileTaken(to)
        copied = to.with_name(f"{to.name}.{token_hex(4)}{_UNFINISHED}")  # of no other backup
        try:
            create(copied)
            with closing(sqlite3.connect(copied)) as copy:
                ledger.connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            ledger.require_unchanged()
            flush(copied)
            _name(copied, to)
        except FileExistsError as error:
            raise FileTaken(to) from error
        finally:
            for path in (copied, beside(copied, "-journal")):
                path.unlink(missing_ok=True)


def unfinished_backups(to: Path) -> tuple[Path, ...]:
    """Return the temporary files of backups to a path, killed or still running."""
    beginning = f"{to.name}."
    beside = sorted(to.parent.iterdir())
    return tuple(
        path for path in beside if path.name.startswith(beginning) and _UNFINISHED in path.name
    )


def _name(copied: Path, to: Path) -> None:
    """Rename a finished copy, but never over a file that was created meanwhile."""
    with ExitStack() as failed:
        try:
            os.link(copied, to)  # whole at once
            failed.callback(to.unlink)
        except FileExistsError:
            raise
        except OSError:  # FAT and many a mount have no hard links
            os.close(os.open(to, os.O_CREAT | os.O_EXCL))
            failed.callback(to.unlink)
            copied.replace(to)
        flush(to.parent)
        failed.pop_all()


_encode: Final = msgspec.json.Encoder().encode


class _HeaderLine(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["tourney/events@1"]


class _EventLine(msgspec.Struct, forbid_unknown_fields=True):
    """A row without position, version and chain, which follow from the lines before it."""

    event_id: str  # hexadecimal
    stream: str
    type: str
    schema_version: int
    recorded_us: int
    data: str  # the payload's JSON as stored
    leaf: str  # hexadecimal


class _FooterLine(msgspec.Struct, forbid_unknown_fields=True):
    n_events: int
    head: str
    sha256: str  # of all bytes before this line


Part = TypeVar("Part", _HeaderLine, _EventLine, _FooterLine)


def export_lines(rows: Iterable[StoredEvent]) -> Iterator[bytes]:
    """Yield the lines of an export; the same events always give the same bytes."""
    digest = hashlib.sha256()
    position, chain = 0, GENESIS
    line = _encode(_HeaderLine("tourney/events@1")) + b"\n"
    for row in rows:
        digest.update(line)
        yield line
        line = _encode(_line_of(row)) + b"\n"
        position, chain = row.position, row.chain
    digest.update(line)
    yield line
    yield _encode(_footer(position, chain, digest.hexdigest())) + b"\n"


def read_export(lines: Iterable[bytes]) -> Iterator[StoredEvent]:
    """Yield the events of an export; whether it is complete is known only at its end.

    Raises:
        BrokenExport: It is not an export, was truncated or changed, or an event does not match its
            leaf.
    """
    digest = hashlib.sha256()
    position, chain, versions = 0, GENESIS, dict[str, int]()
    number, held = 0, b""
    for number, line in enumerate(lines, start=1):
        if number == 1:
            _decoded(line, 1, _HeaderLine)
        elif number > 2:  # noqa: PLR2004  # what is held is no header
            row = _row_of(_decoded(held, number - 1, _EventLine), number - 1)
            position, chain = position + 1, link_hash(chain, row.leaf)
            version = versions[row.stream] = versions.get(row.stream, 0) + 1
            yield row._replace(position=position, version=version, chain=chain)
        digest.update(held)
        held = line
    if _decoded(held, number, _FooterLine) != _footer(position, chain, digest.hexdigest()):
        raise BrokenExport(number, "the lines before it differ from those that were exported")


def _footer(position: int, chain: bytes, sha256: str) -> _FooterLine:
    return _FooterLine(position, str(Head(position, Digest(chain.hex()))), sha256)


def _line_of(row: StoredEvent) -> _EventLine:
    return _EventLine(
        row.event_id.hex(),
        row.stream,
        row.type,
        row.schema_version,
        row.recorded_us,
        row.data.decode(),
        row.leaf.hex(),
    )


def _row_of(line: _EventLine, number: int) -> StoredEvent:
    """Return an event without position, version and chain, if its content matches its leaf."""
    try:
        event_id, leaf = bytes.fromhex(line.event_id), bytes.fromhex(line.leaf)
    except ValueError as error:
        raise BrokenExport(number, f"an id or leaf is not hexadecimal: {error}") from error
    row = StoredEvent(
        position=0,
        event_id=event_id,
        stream=line.stream,
        version=0,
        type=line.type,
        schema_version=line.schema_version,
        recorded_us=line.recorded_us,
        data=line.data.encode(),
        leaf=leaf,
        chain=b"",
    )
    if leaf_hash(row.entry) != leaf:
        raise BrokenExport(number, "its content is not what was recorded")
    return row


def _decoded(line: bytes, number: int, kind: type[Part]) -> Part:
    try:
        return msgspec.json.decode(line, type=kind)
    except ValueError as error:
        if kind is _FooterLine:
            why = "the file ends without the last line of an export: it was truncated or changed"
        else:
            why = f"not a line of an export: {error}"
        raise BrokenExport(number, why) from error
