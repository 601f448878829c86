"""Opening a ledger's file, alone and beside others."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from stat import S_IMODE
from threading import Barrier, Timer

import pytest

from ledger.errors import CannotRead, CannotWrite, NewerFormat, NoLedger, NotALedger
from ledger.storage import connection, schema
from ledger.storage.connection import (
    _empty_ledger,
    connect_for_writing,
    immediate_transaction,
    open_for_reading,
)
from ledger.storage.files import beside, wal_of
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.hostile import unprivileged

Opener = Callable[[Path], sqlite3.Connection]
both_ways = pytest.mark.parametrize("opener", [open_for_reading, connect_for_writing])


def read(path: Path) -> list[int]:
    """Return the positions that a reader finds."""
    with Ledger.read_only(path) as ledger:
        return [each.position for each in ledger.read()]


def append_one(path: Path) -> int:
    """Append the next event as another writer would, and return its position."""
    with Ledger.open(path) as ledger:
        (receipt,) = ledger.append(STREAM, verdicts(1, after=ledger.head.position))
    return receipt.recorded.position


def test_opening_for_writing_creates_what_is_not_there(path: Path) -> None:
    """The first run needs no set-up; the file says whose it is and in which format."""
    with Ledger.open(path) as ledger:
        settings = {
            name: ledger.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode", "synchronous")
        }

    assert settings == {
        "application_id": int.from_bytes(b"TOUR"),
        "user_version": schema.FORMAT,
        "journal_mode": "wal",
        "synchronous": 2,  # FULL: each commit is flushed
    }


@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o664), (0o022, 0o644), (0o077, 0o600)])
def test_new_files_have_the_rights_that_the_umask_leaves(path: Path, umask: int, mode: int) -> None:
    """In a shared folder, a group writes one ledger."""
    before = os.umask(umask)
    try:
        with Ledger.open(path):
            modes = {each.name: S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)

    assert modes == {f"run.ledger{suffix}": mode for suffix in ("", "-shm", "-wal", ".lock")}


def test_an_empty_file_holds_no_ledger_and_becomes_one(path: Path) -> None:
    """A run that was killed while it began is run again; a report has nothing to say of it."""
    path.touch()

    with pytest.raises(NoLedger, match="there is no ledger at"):
        Ledger.read_only(path)
    assert path.read_bytes() == b""

    assert append_one(path) == 1
    assert read(path) == [1]


def test_a_path_of_any_spelling_can_be_read(tmp_path: Path) -> None:
    """Readers open by URI, in which these characters mean something."""
    path = tmp_path / "50% of #1? ü.ledger"

    append_one(path)

    assert read(path) == [1]


def write_diary(path: Path) -> None:
    """Write a text."""
    path.write_text("Dear diary, today nothing happened at all.\n" * 50)


def make_bookmarks(path: Path) -> None:
    """Make a database of SQLite's, as a browser's history is."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmark (url TEXT)")


@both_ways
@pytest.mark.parametrize(
    ("write", "why"),
    [
        (write_diary, "file is not a database; name another file"),
        (make_bookmarks, "belongs to another program"),
    ],
)
def test_a_file_of_another_program_is_not_a_ledger(
    path: Path, opener: Opener, write: Callable[[Path], None], why: str
) -> None:
    """A mistyped --ledger must never be written to."""
    write(path)
    before = path.read_bytes()

    with pytest.raises(NotALedger, match=why) as caught:
        opener(path)

    assert caught.value.path == path
    assert path.read_bytes() == before


@both_ways
@pytest.mark.parametrize("n_bytes", [20_000, 40_000])
def test_a_ledger_that_was_cut_is_damaged_and_a_backup_is_asked_for(
    filed: Path, opener: Opener, n_bytes: int
) -> None:
    """A download that broke off is no file of another program, and no matter of permissions."""
    filed.write_bytes(filed.read_bytes()[:n_bytes])

    with pytest.raises(CannotRead, match=r"run\.ledger is damaged: .*; restore a backup"):
        opener(filed)


@both_ways
def test_a_newer_format_is_refused_and_left_alone(filed: Path, opener: Opener) -> None:
    """An old tourney must not append to a ledger whose rules it does not know."""
    with closing(sqlite3.connect(filed)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    before = filed.read_bytes()

    with pytest.raises(NewerFormat, match=r"format 4, this tourney reads up to 3; upgrade") as (
        caught
    ):
        opener(filed)

    assert (caught.value.path, caught.value.found, caught.value.known) == (filed, 4, 3)
    assert filed.read_bytes() == before


@pytest.mark.parametrize("name", ["missing.ledger", "missing/run.ledger", "."])
def test_reading_creates_nothing(tmp_path: Path, name: str) -> None:
    """A mistyped --ledger must not leave an empty ledger that looks like a lost run."""
    with pytest.raises(NoLedger, match="there is no ledger at"):
        open_for_reading(tmp_path / name)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing/run.ledger", "No such file .* correct the path"), (".", "unable to open")],
)
def test_a_place_that_holds_no_file_cannot_be_written(tmp_path: Path, name: str, why: str) -> None:
    """The message names the path, since the folder is what the user mistyped."""
    path = tmp_path / name

    with pytest.raises(CannotWrite, match=why) as caught:
        Ledger.open(path)

    assert caught.value.path == path
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission_cannot_take_a_ledger(public_folder: Path) -> None:
    """A run must fail before the first judge query is paid for."""
    public_folder.chmod(0o555)

    with (
        unprivileged(),
        pytest.raises(CannotWrite, match="fix the permissions of the file and its folder"),
    ):
        Ledger.open(public_folder / "run.ledger")

    assert list(public_folder.iterdir()) == []


def test_a_ledger_on_a_read_only_shelf_can_be_read(public_folder: Path) -> None:
    """Results are archived read-only, where SQLite cannot make the side files of a WAL."""
    path = public_folder / "run.ledger"
    append_one(path)
    public_folder.chmod(0o555)

    with unprivileged():
        positions = read(path)
        with pytest.raises(CannotWrite, match="Permission denied"):
            append_one(path)

    assert positions == [1]


def test_what_a_reader_left_is_named_where_it_cannot_be_written(public_folder: Path) -> None:
    """A reader leaves side files with its own permissions; the ledger's own then tell nothing."""
    path = public_folder / "run.ledger"
    link = public_folder / "link.ledger"
    link.symlink_to(path)
    with unprivileged():
        append_one(path)
        read(path)
        left = beside(path, "-shm")
        left.chmod(0o444)

        for place in (path, link):
            with pytest.raises(CannotWrite) as caught:
                append_one(place)
        left.chmod(0o644)
        position = append_one(path)

    assert f"permission for {left} (uid {path.stat().st_uid}, mode 444), which" in caught.value.why
    assert "delete nothing" in caught.value.why
    assert position == 2


def test_a_log_that_cannot_be_read_is_not_passed_by_behind_a_link(
    public_folder: Path, filed: Path
) -> None:
    """What was copied while it was written to has its newest events in the log beside it."""
    copy, link = public_folder / "copy.ledger", public_folder / "link.ledger"
    with Ledger.open(filed):
        append_one(filed)
        shutil.copy(filed, copy)
        shutil.copy(wal_of(filed), wal_of(copy))
    link.symlink_to(copy)
    public_folder.chmod(0o555)

    for place in (copy, link):
        with (
            unprivileged(),
            pytest.raises(CannotRead, match=r"copy\.ledger and copy\.ledger-wal together"),
        ):
            read(place)


def test_a_ledger_without_permission_cannot_be_read(public_folder: Path) -> None:
    """The message must not speak of writing to one who only reads."""
    path = public_folder / "run.ledger"
    append_one(path)
    path.chmod(0)

    with unprivileged(), pytest.raises(CannotRead, match="check its permissions") as caught:
        open_for_reading(path)

    assert caught.value.path == path


def failed_with(code: int) -> sqlite3.OperationalError:
    """Return an error of SQLite's with this code."""
    failed = sqlite3.OperationalError("disk I/O error")
    failed.sqlite_errorcode = code
    return failed


def test_what_a_killed_writer_left_is_flushed_before_anybody_tells_of_it(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been killed between writing and flushing a commit."""
    left, flushed = filed.with_name("left.ledger"), list[bool]()
    with Ledger.open(filed):
        append_one(filed)
        shutil.copy(filed, left)
        shutil.copy(wal_of(filed), wal_of(left))

    def fsync(handle: int) -> None:
        flushed.append(os.path.samestat(os.fstat(handle), wal_of(left).stat()))

    monkeypatch.setattr(os, "fsync", fsync)
    for opened in (Ledger.read_only, Ledger.open):
        with opened(left) as ledger:
            assert ledger.head.position == N_FILED + 1
        assert True in flushed
        flushed.clear()


def test_a_log_that_cannot_be_flushed_is_not_told_of(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read would be lost with the power."""

    def fails(_handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Ledger.open(filed):
        append_one(filed)
        monkeypatch.setattr(os, "fsync", fails)

        with pytest.raises(CannotRead, match="Input/output error"):
            Ledger.read_only(filed)
        with pytest.raises(CannotWrite, match="Input/output error"):
            Ledger.open(filed)


def test_a_ledger_whose_beginning_was_interrupted_can_be_read(filed: Path) -> None:
    """SQLite undoes what a killed process began, which a reader without rights could not."""
    beside(filed, "-journal").write_bytes(b"")

    assert read(filed) == [1, 2, 3]


def test_a_ledger_that_gets_no_log_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says nothing where it could not switch, and what follows it would not be as safe."""
    monkeypatch.setattr(schema, "WAL", "PRAGMA journal_mode = TRUNCATE")

    with pytest.raises(CannotWrite, match="the journal mode stays 'truncate'"):
        Ledger.open(path)


def test_a_transaction_that_sqlite_ended_keeps_its_error(path: Path) -> None:
    """On some faults SQLite rolls back by itself; the fault must not hide behind a second one."""
    append_one(path)
    with closing(connect_for_writing(path)) as connection:
        with (
            pytest.raises(sqlite3.IntegrityError, match="NOT NULL"),
            immediate_transaction(connection),
        ):
            connection.execute("INSERT OR ROLLBACK INTO event (position) VALUES (2)")

        position = append_one(path)

    assert position == 2


def test_a_waiting_writer_gets_its_turn(filed: Path) -> None:
    """Two runs on one ledger take turns; neither sees an error."""
    with closing(sqlite3.connect(filed, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = Timer(0.1, other.rollback)
        release.start()

        position = append_one(filed)

        release.join()

    assert position == N_FILED + 1


def test_a_writer_that_waits_too_long_is_refused(filed: Path) -> None:
    """A forgotten transaction in an SQLite browser ends in a sentence, not in a traceback."""
    connection = connect_for_writing(filed)
    connection.execute("PRAGMA busy_timeout = 20")

    with (
        Ledger(connection, filed) as ledger,
        closing(connect_for_writing(filed)) as other,
        immediate_transaction(other),
        pytest.raises(CannotWrite, match="locked; this step recorded nothing"),
    ):
        ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert read(filed) == [1, 2, 3]


def test_a_creator_waits_for_the_one_who_came_first(path: Path) -> None:
    """Two runs started at once find one ledger, not an error and not two schemas."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as first:
        first.execute("BEGIN IMMEDIATE")
        for statement in schema.CREATION:
            first.execute(statement)
        release = Timer(0.2, first.execute, ["COMMIT"])
        release.start()

        position = append_one(path)

        release.join()

    assert position == 1


@pytest.mark.no_cover
def test_many_creators_at_once_make_one_ledger(path: Path) -> None:
    """SQLite refuses the switch to WAL at once, without waiting, when two make it together."""
    n_writers = 8
    barrier = Barrier(n_writers)

    def write(number: int) -> int:
        barrier.wait()
        with Ledger.open(path) as ledger:
            return ledger.append(STREAM, verdicts(1, after=number))[0].recorded.position

    with ThreadPoolExecutor(n_writers) as pool:
        positions = list(pool.map(write, range(n_writers)))

    assert sorted(positions) == list(range(1, n_writers + 1))
    assert read(path) == sorted(positions)


def test_a_creation_that_fails_is_reported(public_folder: Path) -> None:
    """An empty file that may not be written is no place for a ledger."""
    path = public_folder / "run.ledger"
    path.touch()
    path.chmod(0o444)

    with unprivileged(), pytest.raises(CannotWrite, match="readonly"):
        Ledger.open(path)

    assert path.read_bytes() == b""


_BEGINS_AND_DIES = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("CREATE TABLE event (data BLOB)")
connection.executemany("INSERT INTO event VALUES (?)", [(bytes(9_000),)] * 9)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_began_is_undone_by_who_reads(path: Path) -> None:
    """Its journal may come after the reader has looked for one; to undo it takes a writer."""
    subprocess.run([sys.executable, "-c", _BEGINS_AND_DIES, str(path)], check=False)
    assert beside(path, "-journal").stat().st_size > 0

    with pytest.raises(NoLedger):
        Ledger.read_only(path)

    assert not beside(path, "-journal").exists()


def test_what_else_keeps_a_reader_out_is_told(filed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody opens it for writing then."""

    def busy(*_: object, **__: object) -> sqlite3.Connection:
        raise failed_with(sqlite3.SQLITE_BUSY)

    monkeypatch.setattr(connection, "connect", busy)

    with pytest.raises(CannotRead, match="disk I/O error"):
        Ledger.read_only(filed)


def test_a_ledger_in_memory_is_made_as_a_file_is(path: Path) -> None:
    """It is copied from one that is made once, and nothing looks at it again."""
    _empty_ledger.cache_clear()

    with Ledger.in_memory() as rehearsal, Ledger.open(path) as filed:
        made, of_file = (
            [
                each.connection.execute(query).fetchall()
                for query in (
                    "SELECT type, name, sql FROM sqlite_schema ORDER BY name",
                    *(f"PRAGMA {name}" for name in ("application_id", "user_version")),
                    *(pragma.partition(" = ")[0] for pragma in schema.EVERY_CONNECTION),
                )
            ]
            for each in (rehearsal, filed)
        )

    assert made == of_file
