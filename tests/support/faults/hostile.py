"""What the world does to a ledger: hands that change its file, users without permission."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread, get_ident

from ledger.chain import GENESIS, leaf_hash, link_hash
from ledger.recorded import StoredEvent
from ledger.storage import schema
from tests.support.patience import wait_until

NOBODY = 65534
SOMEBODY_ELSE = 65533
GUARDS = tuple(name for name in schema.DEFINITIONS if "_is_never_" in name)


def tamper(path: Path, *statements: str) -> None:
    """Change a ledger's file with SQL, behind its back and past its triggers."""
    with unguarded(path) as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger's file without its triggers; a patient hand puts them back afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for guard in GUARDS:
            connection.execute(f"DROP TRIGGER {guard}")
        yield connection
        for guard in GUARDS:
            connection.execute(schema.DEFINITIONS[guard])


def hash_again(connection: sqlite3.Connection) -> None:
    """Give every event the hashes that its content asks for, as who knows the law can."""
    chain = GENESIS
    rows = connection.execute("SELECT * FROM event ORDER BY position").fetchall()
    for row in map(StoredEvent._make, rows):
        leaf = leaf_hash(row.entry)
        chain = link_hash(chain, leaf)
        connection.execute(
            "UPDATE event SET leaf = ?, chain = ? WHERE position = ?", (leaf, chain, row.position)
        )


def loosen(connection: sqlite3.Connection) -> None:
    """Take from the table every type, check, key and trigger, as an owner of the file can."""
    connection.executescript(
        "CREATE TABLE loose AS SELECT * FROM event; DROP TABLE event;"
        "PRAGMA legacy_alter_table = ON;"  # views of it may stay
        "ALTER TABLE loose RENAME TO event"
    )


@contextmanager
def unprivileged(user: int = NOBODY) -> Iterator[None]:
    """Be an ordinary user for a while: root, who often runs tests, may write anywhere."""
    if os.getuid() != 0:
        yield
        return
    before = os.geteuid()
    _become(user)
    try:
        yield
    finally:
        _become(before)


def _become(user: int) -> None:
    os.seteuid(0)  # who alone may
    os.seteuid(user)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Press Ctrl-C in this thread after a while."""
    with _alarm_interrupts():
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def interrupted_once(is_so: Callable[[], bool]) -> Iterator[None]:
    """Press Ctrl-C in this thread once something is so, which the block must come to."""
    mine = get_ident()

    def press() -> None:
        wait_until(is_so)
        signal.pthread_kill(mine, signal.SIGALRM)

    with _alarm_interrupts():
        finger = Thread(target=press, daemon=True)
        finger.start()
        yield
        finger.join()


@contextmanager
def _alarm_interrupts() -> Iterator[None]:
    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
