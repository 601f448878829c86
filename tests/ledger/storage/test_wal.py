"""The log is moved into the file, and what a failed flush forgot is written again."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from errno import EIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest

from ledger.errors import CannotWrite, DiskFailed
from ledger.storage import wal
from ledger.storage.connection import BUSY_TIMEOUT_S, connect
from ledger.storage.files import beside, open_handle, wal_of
from ledger.storage.wal import move_log, settle_log
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.power_loss import Losses
from tests.support.patience import PATIENCE_S

N_MOVED: Final = 200  # events, of many pages
ROOT: Final = Path(__file__).parents[3]
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the power is only thought away
_LOCK_OF_MOVES: Final = 121  # a byte of -shm: sqlite.org/walformat.html
_HOLD: Final = """
import fcntl, sys
with open(sys.argv[1], "rb+") as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 1, int(sys.argv[2]))
    print("held", flush=True)
    sys.stdin.read()
"""


class Failing(sqlite3.Connection):
    """A connection whose disk is full, or broken."""

    code = sqlite3.SQLITE_FULL

    def execute(self, *_: object) -> sqlite3.Cursor:  # whatever it is told
        """Fail."""
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.code
        raise error


def failing_with(code: int) -> Callable[[Path], AbstractContextManager[Failing]]:
    """Return what opens no connection but one that fails so."""
    failing = Failing(":memory:")
    failing.code = code
    return lambda _path: nullcontext(failing)


def losses(*words: str) -> list[Losses]:
    """Let each flush fail in turn while a reader keeps a part of the log from being moved."""
    with TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.faults.pinned_reader", folder, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE_S,
        )
    return [msgspec.json.decode(line, type=Losses) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("words", [[], ["cut"], ["opens"]])
def test_what_was_moved_before_a_failed_flush_is_not_lost(words: list[str]) -> None:
    """SQLite moves a part without a flush, and after the next flush failed, only the rest again.

    Another program that moves the rest, and cuts the log, must not come before us.
    """
    found = losses(*words)

    assert sum(each.n_broken for each in found) == 0, found
    assert len(found) > 20  # flushes that failed


@pytest.mark.nightly
def test_what_is_not_written_again_is_lost() -> None:
    """A proof that the test above would see it."""
    assert sum(each.n_broken for each in losses("forgets")) > 0


@pytest.fixture
def logged(filed: Path) -> Iterator[Ledger]:
    """Give a ledger with events in its log, and a reader that keeps the last from being moved."""
    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, verdicts(N_MOVED, after=N_FILED))
        with closing(sqlite3.connect(filed, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM event").fetchall()
            ledger.append(STREAM, verdicts(1, after=N_FILED + N_MOVED))
            yield ledger


def pages(path: Path) -> bytes:
    """Return what the file holds without its log, which SQLite keeps open."""
    return os.pread(open_handle(path), path.stat().st_size, 0)


def test_a_long_log_is_moved(filed: Path) -> None:
    """Else it would grow as long as a run."""
    with Ledger.open(filed) as ledger:
        ledger.pages_until_moved = 2  # of the log; an append is of one or more
        before = pages(filed)
        ledger.append(STREAM, verdicts(1, after=N_FILED))
        assert pages(filed) == before

        ledger.append(STREAM, verdicts(1, after=N_FILED + 1))

        assert pages(filed) != before


def test_pages_that_were_moved_are_written_again(logged: Ledger) -> None:
    """As if the system had dropped them; those of which the log has a newer one are left to it."""
    first_new = logged.path.stat().st_size
    move_log(logged.connection, logged.path)
    moved = pages(logged.path)
    os.pwrite(open_handle(logged.path), b"forgotten", first_new)
    assert pages(logged.path) != moved

    settle_log(logged.connection, logged.path)

    assert pages(logged.path) == moved
    with Ledger.read_only(logged.path) as read:
        assert [each.position for each in read.read()] == [*range(1, N_FILED + N_MOVED + 2)]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE])
def test_a_move_that_finds_no_room_is_left_to_the_next(
    filed: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """What was appended is in the log, and on the disk: the append must not be called a failure."""
    with Ledger.open(filed) as ledger:
        monkeypatch.setattr(wal, "_another_connection", failing_with(code))
        ledger.pages_until_moved = 1

        ledger.append(STREAM, verdicts(1, after=N_FILED))

        assert ledger.head.position == N_FILED + 1


def test_a_move_that_is_not_flushed_is_told(filed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events are recorded; what the disk does with the rest must be looked at."""
    with Ledger.open(filed) as ledger:
        ledger.pages_until_moved = 1
        with monkeypatch.context() as broken:
            broken.setattr(wal, "_another_connection", failing_with(sqlite3.SQLITE_IOERR_FSYNC))
            with pytest.raises(DiskFailed):
                ledger.append(STREAM, verdicts(1, after=N_FILED))
        ledger.append(STREAM, verdicts(1, after=N_FILED + 1))

        assert ledger.head.position == N_FILED + 2


def test_a_move_does_not_wait_for_another_program(filed: Path) -> None:
    """What was appended is recorded; a later move will do."""
    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, verdicts(1, after=N_FILED))
        with closing(sqlite3.connect(filed, isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")

            move_log(ledger.connection, filed)

        [(timeout_ms,)] = ledger.select("PRAGMA busy_timeout")
        assert timeout_ms == 1_000 * BUSY_TIMEOUT_S


def test_a_disk_that_fails_twice_is_told_as_one_that_failed(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append may be recorded: "nothing was recorded" would be wrong."""

    def fail(path: Path) -> bool:
        raise OSError(EIO, "Input/output error", path)

    with Ledger.open(filed) as ledger:
        ledger.pages_until_moved = 1
        monkeypatch.setattr(wal, "_another_connection", failing_with(sqlite3.SQLITE_IOERR_FSYNC))
        monkeypatch.setattr(wal, "_write_all_again", fail)
        with pytest.raises(DiskFailed):
            ledger.append(STREAM, verdicts(1, after=N_FILED))


def test_nobody_cuts_the_log_until_its_pages_are_written_again(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is the only place where they are, once the system forgot what was moved."""
    results: list[tuple[int, int, int]] = []

    def cut(path: Path) -> bool:
        with closing(sqlite3.connect(path, timeout=0)) as stranger:
            results.extend(stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        return False

    with Ledger.open(filed) as ledger:
        ledger.pages_until_moved = 1
        monkeypatch.setattr(wal, "_another_connection", failing_with(sqlite3.SQLITE_IOERR_FSYNC))
        monkeypatch.setattr(wal, "_write_all_again", cut)
        with pytest.raises(DiskFailed):
            ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert [is_busy for is_busy, _, _ in results[:1]] == [1]


@pytest.fixture
def moving(filed: Path) -> Iterator["subprocess.Popen[str]"]:
    """Let another process move the log of an open ledger, until its input ends."""
    with Ledger.open(filed):
        command = [sys.executable, "-c", _HOLD, str(beside(filed, "-shm")), str(_LOCK_OF_MOVES)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            yield process


def test_who_moves_the_log_is_waited_for(
    filed: Path, moving: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a moment, and nobody is told of it."""
    monkeypatch.setattr("time.sleep", lambda _seconds: moving.communicate(""))

    with Ledger.open(filed) as ledger:
        assert ledger.head.position == N_FILED


def test_who_moves_the_log_for_ever_is_not_waited_for(
    filed: Path, moving: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs, or holds the lock by mistake."""
    monkeypatch.setattr(wal, "BUSY_TIMEOUT_S", -1)

    with pytest.raises(CannotWrite, match="another process moves the log for too long"):
        Ledger.open(filed)
    moving.kill()


def test_a_handle_is_never_opened_anew(filed: Path) -> None:
    """Closing it would release SQLite's locks; there is none where SQLite writes nothing."""
    with pytest.raises(OSError, match="SQLite does not write"):
        open_handle(filed)
    with closing(connect(f"{filed.as_uri()}?mode=ro", uri=True)) as reader:
        reader.execute("SELECT count(*) FROM event").fetchall()
        with pytest.raises(OSError, match="SQLite does not write"):
            open_handle(filed)
    with Ledger.open(filed):
        assert os.path.samestat(os.fstat(open_handle(filed)), filed.stat())
        assert open_handle(wal_of(filed)) != open_handle(filed)
