"""Processes take turns at a ledger."""

import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from ledger.storage.lock import PATIENCE_S, FileLock, Holder, _lines_of
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.holder import held_elsewhere


def close_input(process: subprocess.Popen[str]) -> None:
    """Let a holder go on to its end."""
    assert process.stdin
    process.stdin.close()


@pytest.fixture
def lock_file(path: Path) -> Path:
    """Name the lock of the ledger at `path`."""
    return path.with_name(f"{path.name}.lock")


def test_a_writer_that_waits_is_told_for_whom(filed: Path, lock_file: Path) -> None:
    """A run that stands still without a word looks like one that hangs."""
    told: list[Holder | None] = []

    def release(holder: Holder | None) -> None:
        told.append(holder)
        close_input(process)

    with Ledger.open(filed, on_wait=release) as ledger, held_elsewhere(lock_file) as process:
        assert ledger._lock
        ledger._lock.patience_s = 0.1
        began = time.monotonic()
        (receipt,) = ledger.append(STREAM, verdicts(1, after=N_FILED))
        waited_s = time.monotonic() - began

        assert receipt.recorded.position == N_FILED + 1
        assert waited_s >= 0.1
        command = f"{sys.executable} -m tests.support.faults.holder {lock_file}"
        assert told == [Holder(process.pid, command)]
        assert str(told[0]) == f"process {process.pid} ({command})"


def test_a_lock_is_free_once_its_holder_is_killed(lock_file: Path) -> None:
    """A crashed run must leave nothing behind that somebody has to delete."""
    told: list[Holder | None] = []

    with closing(FileLock(lock_file, told.append)) as lock, held_elsewhere(lock_file) as process:
        killer = Timer(0.1, process.kill)
        began = time.monotonic()
        killer.start()
        with lock:
            waited_s = time.monotonic() - began
            assert process.wait() < 0

    killer.join()
    assert not told or waited_s > PATIENCE_S, "a short wait is not worth a word"


def test_opening_waits_for_its_turn_too(path: Path, lock_file: Path) -> None:
    """Whoever creates a ledger is alone with it, so no two schemas meet."""
    with held_elsewhere(lock_file) as process:
        release = Timer(0.1, close_input, [process])
        release.start()

        with Ledger.open(path) as ledger:
            assert process.wait() == 0
            assert ledger.head.position == 0

    release.join()


def test_a_block_that_fails_lets_go_of_the_lock(lock_file: Path) -> None:
    """A refused append must not keep other processes out."""
    with closing(FileLock(lock_file)) as first, closing(FileLock(lock_file)) as second:
        with pytest.raises(KeyboardInterrupt), first:
            raise KeyboardInterrupt

        with second:
            pass


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_deleted_lock_file_is_taken_again(lock_file: Path, *, is_replaced: bool) -> None:
    """Who held on to the deleted one would be alone with it, beside another at the new one."""
    with closing(FileLock(lock_file)) as first:
        with first:
            lock_file.unlink()
            if is_replaced:
                lock_file.touch()
        with closing(FileLock(lock_file)) as second, second:
            waiting = threading.Thread(target=first.__enter__)
            waiting.start()
            waiting.join(0.05)
            assert waiting.is_alive()
        waiting.join()
        assert os.path.samestat(lock_file.stat(), os.fstat(first._file))
        first.__exit__()


def test_a_lock_goes_with_its_folder(tmp_path: Path) -> None:
    """Where nobody else can take it, there is nobody to keep out."""
    folder = tmp_path / "place"
    folder.mkdir()
    with closing(FileLock(folder / "run.lock")) as lock:
        shutil.rmtree(folder)

        with lock:
            assert not folder.exists()


def test_a_lock_that_nobody_holds_has_no_holder(lock_file: Path) -> None:
    """It may have been let go of while one asked; others' locks must not be taken for it."""
    other_file = lock_file.with_name("other.lock")

    with closing(FileLock(lock_file)) as lock, closing(FileLock(other_file)) as other, other:
        assert lock._holder() is None


def test_a_system_that_does_not_tell_who_holds_a_lock_says_nothing(tmp_path: Path) -> None:
    """Other systems than Linux have no /proc; a wait is told there without a name."""
    assert _lines_of(tmp_path / "locks") == []


def test_a_holder_without_a_name_may_be_dead_with_a_child_alive() -> None:
    """The kernel names who took the lock; a child of it that lives on holds it all the same."""
    assert str(Holder(29820, "")) == "process 29820, or a child that outlived it"


def test_a_closed_ledger_may_be_closed_again(filed: Path) -> None:
    """Files may, and so does a `with` around a block that closes by hand."""
    ledger = Ledger.open(filed)
    ledger.close()

    ledger.close()
