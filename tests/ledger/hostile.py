"""What the world does to a ledger: hands that change its file, users without permission."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

NOBODY = 65534


def tamper(path: Path, *statements: str) -> None:
    """Change a ledger's file with SQL, behind its back and past its triggers."""
    with closing(sqlite3.connect(path)) as connection:
        for trigger in ("updated", "deleted", "replaced"):
            connection.execute(f"DROP TRIGGER IF EXISTS event_is_never_{trigger}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def loosen(connection: sqlite3.Connection) -> None:
    """Take from the table every type, check, key and trigger, as an owner of the file can."""
    connection.executescript(
        "CREATE TABLE loose AS SELECT * FROM event; DROP TABLE event;"
        "ALTER TABLE loose RENAME TO event"
    )


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be an ordinary user for a while: root, who often runs tests, may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
