"""Ask a ledger in SQL: read-only, one statement, whatever it says."""

import math
import re
import sqlite3
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from commands.auditing.soundness import require_sound
from commands.errors import ConfigurationError
from ledger.errors import CannotRead
from ledger.identity import Json
from ledger.storage.connection import is_corrupt
from ledger.storage.schema import VIEWS
from ledger.store import Ledger

_ALLOWED: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_LOOKS_EVERY: Final = 100_000  # SQLite's instructions: some milliseconds
_NESTED: Final = "SELECT 1 FROM json_each('[]'), json_tree('[]')"
"""Makes SQLite know these tables, which it would not be authorized to make later."""

_UNKNOWN: Final = re.compile(r"no such (table|column): (?:\w+\.)?(\w+)")
_NAMES: Final = {
    "table": [view.name for view in VIEWS],
    "column": sorted({column.name for view in VIEWS for column in view.columns}),
}


class Answer(NamedTuple):
    """What a query returned: the names of its columns, each once, and its rows."""

    names: tuple[str, ...]
    rows: tuple[tuple[Json, ...], ...]


def ask(ledger: Ledger, query: str) -> Answer:
    """Return what one SQL statement returns that reads, and does nothing else.

    Ctrl-C stops it.

    Raises:
        ConfigurationError: It is no such statement; the message names the nearest table or column.
        CannotRead: The file is damaged.
        AuditDisagrees: An event is.
        KeyboardInterrupt: It was stopped.
    """
    connection = ledger.connection
    try:
        _make_views(connection)
    except sqlite3.Error as error:
        raise CannotRead(ledger.path, str(error), is_damaged=is_corrupt(error)) from error
    connection.execute(_NESTED)
    connection.set_authorizer(_authorized)
    connection.set_progress_handler(_no_reason_to_stop, _LOOKS_EVERY)
    connection.text_factory = lambda text: text.decode(errors="replace")
    try:
        cursor = connection.execute(query)
        names = [column for column, *_ in cursor.description or ()]
        rows = tuple(tuple(map(_as_json, row)) for row in cursor)
    except (sqlite3.Error, sqlite3.Warning) as error:
        _explain(error, ledger)
        raise ConfigurationError(
            [f"the query cannot be answered: {error}{_hint(error)}"]
        ) from error
    ledger.require_unchanged()
    if not names:
        raise ConfigurationError(["the query returns no rows: it must be one SELECT"])
    return Answer(_each_once(names), rows)


def _make_views(connection: sqlite3.Connection) -> None:
    """Make today's views for this connection: the file may have those of an earlier version."""
    connection.set_authorizer(None)
    for view in VIEWS:
        connection.execute(f"CREATE TEMP VIEW IF NOT EXISTS {view.name} AS {view.select}")


def _authorized(action: int, _first: object, name: object, *_: object) -> int:
    """Let a statement read, and call functions of SQLite that do not load code."""
    is_allowed = action in _ALLOWED and name != "load_extension"
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _no_reason_to_stop() -> int:
    """Let Python look for Ctrl-C, which raises here and so ends the statement."""
    return 0


def _explain(error: Exception, ledger: Ledger) -> None:
    """Raise what an error is that is no fault of the query."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from error
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR}:
        raise CannotRead(ledger.path, str(error), is_damaged=is_corrupt(error)) from error
    if "malformed JSON" in str(error) and ledger.path.exists():  # of the query, or of an event
        with Ledger.read_only(ledger.path) as again:
            require_sound(again)


def _hint(error: Exception) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
        return "; it may only read"
    found = _UNKNOWN.search(str(error))
    if found is None:
        return ""
    near = get_close_matches(found[2], _NAMES[found[1]], n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `tourney sql` lists all tables"


def _as_json(value: str | bytes | float | None) -> Json:
    """Return a cell as JSON has it: bytes in hex, no infinity."""
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _each_once(names: Sequence[str]) -> tuple[str, ...]:
    """Number the names that come again."""
    return tuple(
        name if name not in names[:place] else f"{name}_{place + 1}"
        for place, name in enumerate(names)
    )
