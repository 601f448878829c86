"""Open a ledger's SQLite file for writing, for reading, or in memory, and translate its errors."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from errno import EDQUOT, EIO, ENOSPC
from functools import cache
from pathlib import Path
from typing import Final

from ledger.errors import (
    AlteredSchema,
    CannotRead,
    CannotWrite,
    DiskFailed,
    NewerFormat,
    NoLedger,
    NotALedger,
)
from ledger.storage import schema
from ledger.storage.files import beside, cannot_write, create, flush, wal_of
from ledger.storage.sharing import kept_open, may_leave_files, refusal_of_change

BUSY_TIMEOUT_S: Final = 30.0
_PRIMARY_CODE: Final = 0xFF  # of an error, without what tells its kinds apart
_FAILED_FLUSHES: Final = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}


def connect_for_writing(path: Path) -> sqlite3.Connection:
    """Open a ledger, or an empty file that will become one.

    Raises:
        NotALedger: The file is something else.
        NewerFormat: A newer tourney wrote it.
        CannotWrite: The folder or the file cannot be written.
    """
    with translated_errors(path, CannotWrite):
        create(path)
        connection = connect(str(path))
        try:
            if not _is_empty(connection):
                _require_ledger(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare(connection: sqlite3.Connection, path: Path) -> bool:
    """Create the tables in an empty file, and set a connection up for writing.

    Returns:
        Whether the file was empty.

    Raises:
        NotALedger: Another program filled the file first.
        AlteredSchema: Its tables or triggers are not as tourney makes them.
    """
    for pragma in schema.EVERY_CONNECTION:
        connection.execute(pragma)
    was_empty = _is_empty(connection)
    if was_empty:
        connection.execute(schema.PAGE_SIZE)
    _use_wal(connection)  # a backup has none
    if was_empty:
        with immediate_transaction(connection):
            if _is_empty(connection):
                for statement in schema.CREATION:
                    connection.execute(statement)
    _require_ledger(connection, path)
    require_own_schema(connection, path)
    _bring_up_to_date(connection, path)
    return was_empty


def _bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    """Make what an earlier version lacks, or made otherwise; all of it or nothing."""
    is_of_format = _pragma(connection, "user_version") == schema.FORMAT
    if is_of_format and schema.has_own_views(connection.execute):
        return
    with immediate_transaction(connection):  # another process may have done it meanwhile
        require_own_schema(connection, path)
        if _pragma(connection, "user_version") < schema.FORMAT:
            for statement in schema.upgrade(connection.execute):
                connection.execute(statement)
        if not schema.has_own_views(connection.execute):
            _make_views(connection)


def _make_views(connection: sqlite3.Connection) -> None:
    """Make each view, in the place of what another version made by its name."""
    from sqlite_utils import Database  # noqa: PLC0415  # 90 ms, and few commands make views

    database = Database(connection, recursive_triggers=False, execute_plugins=False)
    for view in schema.VIEWS:
        database.create_view(view.name, view.select, replace=True)


def require_own_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a ledger to which somebody added a table, index, view or trigger, or changed one.

    Raises:
        AlteredSchema: Its schema is not as tourney makes it.
    """
    with translated_errors(path, CannotRead):
        altered = differences(connection)
    if altered:
        raise AlteredSchema(path, altered)


def differences(connection: sqlite3.Connection) -> list[str]:
    """Describe how a file's schema differs from what tourney makes."""
    return list(schema.differences(connection.execute))


def open_for_reading(path: Path) -> tuple[sqlite3.Connection, Callable[[], None] | None]:
    """Open an existing ledger, read-only.

    Returns:
        The connection; and where it reads without locks, what raises if somebody wrote.

    Raises:
        NoLedger: There is no such file.
        NotALedger: It is something else.
        NewerFormat: A newer tourney wrote it.
        CannotRead: The folder or the file cannot be read.
    """
    with translated_errors(path, CannotRead):
        if not path.is_file():
            raise NoLedger(path)
        if may_leave_files(path):
            try:
                return _open_readonly(path, "mode=ro"), None
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_READONLY:
                    raise
                # who was killed as the file was begun left a journal, by which SQLite undoes that
                return _open_readonly(path, "mode=rw"), None
        with kept_open(path):
            return _open_without_files(path)


def _open_without_files(path: Path) -> tuple[sqlite3.Connection, Callable[[], None] | None]:
    """Open a ledger for a user who makes no files beside it."""
    require_unchanged = refusal_of_change(path)
    if not wal_of(path).exists():  # nobody is writing
        return _open_readonly(path, "mode=ro&immutable=1"), require_unchanged
    try:
        return _open_readonly(path, "mode=ro&readonly_shm=1"), None
    except sqlite3.OperationalError as error:
        both = f"{beside(path, '')} and {wal_of(path).name}"
        why = f"{error}; ask its owner to open it, or copy {both} together into a folder of yours"
        raise CannotRead(path, why) from error


def open_in_memory() -> sqlite3.Connection:
    """Create a ledger that lives as long as its connection: for tests and rehearsals."""
    connection = connect(":memory:")
    connection.deserialize(_empty_ledger())  # a tenth of the time of making and checking it
    for pragma in schema.EVERY_CONNECTION:
        connection.execute(pragma)
    return connection


@cache
def _empty_ledger() -> bytes:
    with closing(connect(":memory:")) as connection:
        prepare(connection, Path(":memory:"))
        return connection.serialize()


@contextmanager
def immediate_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold SQLite's write lock from the first statement; commit all or nothing.

    A deferred BEGIN that reads first and then writes fails if another writer came between.
    """
    _roll_back(connection)  # what an interrupt may have left open
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    finally:
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def connect(database: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database; threads that share the connection must take turns."""
    return sqlite3.connect(
        database,
        uri=uri,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )


def flush_log(path: Path) -> None:
    """Flush what the log holds before anybody tells of it: its writer may have been killed."""
    with suppress(FileNotFoundError):  # there is none
        flush(wal_of(path))


def _open_readonly(path: Path, mode: str) -> sqlite3.Connection:
    connection = connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
    try:
        _require_ledger(connection, path)
        flush_log(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, again and again: SQLite refuses that at once, whatever the timeout."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            (mode,) = connection.execute(schema.WAL).fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            if mode not in {"wal", "memory"}:  # as after a failed flush, of which it says nothing
                raise sqlite3.OperationalError(f"the journal mode stays {mode!r}")
            return


def _is_empty(connection: sqlite3.Connection) -> bool:
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return n_tables == 0 and _pragma(connection, "application_id") == 0


def _require_ledger(connection: sqlite3.Connection, path: Path) -> None:
    try:
        is_empty = _is_empty(connection)  # first: it may be made a ledger just now
        application_id = _pragma(connection, "application_id")
        found = _pragma(connection, "user_version")
    except sqlite3.OperationalError:
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise not_a_ledger(path, error) from error
    if is_empty:  # whoever began it was killed before there was a ledger
        raise NoLedger(path)
    if application_id != schema.APPLICATION_ID:
        raise NotALedger(path, "it belongs to another program")
    if found > schema.FORMAT:
        raise NewerFormat(path, found, schema.FORMAT)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def is_corrupt(error: BaseException) -> bool:
    """Say whether SQLite found a database damaged, or cut."""
    return _code(error) == sqlite3.SQLITE_CORRUPT


def is_failed_disk(error: BaseException | None) -> bool:
    """Say whether a file could not be read, written or flushed, or there was no room."""
    if isinstance(error, OSError):
        return error.errno in {EIO, ENOSPC, EDQUOT}
    return _code(error) in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}


def _code(error: BaseException | None) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & _PRIMARY_CODE


def not_a_ledger(path: Path, error: Exception) -> CannotRead | NotALedger:
    """Return what a file is that SQLite cannot read: a damaged ledger, or something else."""
    if is_corrupt(error):
        return CannotRead(path, str(error), is_damaged=True)
    return NotALedger(path, str(error))


@contextmanager
def translated_errors(path: Path, refused: type[CannotRead | CannotWrite]) -> Iterator[None]:
    """Translate the errors of SQLite and the system into tourney's."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) in _FAILED_FLUSHES:
            raise DiskFailed(path, str(error)) from error
        if refused is CannotWrite:
            raise cannot_write(path, error) from error
        raise CannotRead(path, str(error)) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise not_a_ledger(path, error) from error
