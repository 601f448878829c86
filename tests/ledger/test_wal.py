"""What is told of a commit waits for the disk; other writers do not."""

import os
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.audit import audit
from ledger.errors import DiskFailed
from ledger.storage.connection import connect_for_writing, open_for_reading, prepare
from ledger.storage.lock import FileLock
from ledger.storage.wal import WalFile, wal_of
from ledger.store import Ledger
from tests.builders import NOON, STREAM
from tests.ledger.disks import Disk
from tests.ledger.facts import N_FILED, placed, verdicts


def writer(path: Path, disk: Disk) -> Ledger:
    """Open a ledger as `Ledger.open` does, on such a disk."""
    connection = connect_for_writing(path)
    prepare(connection, path)
    return Ledger(connection, path, lock=FileLock(path.with_name(f"{path.name}.lock")), wal=disk)


@pytest.fixture
def failing(tmp_path: Path) -> WalFile:
    """Give a log that cannot be flushed: it leads to a device that has no disk below it."""
    path = tmp_path / "broken.ledger"
    wal_of(path).symlink_to("/dev/null")
    return WalFile(path)


def test_another_writer_appends_and_is_answered_while_one_waits_for_the_disk(path: Path) -> None:
    """Eight judges on one ledger must not take turns at waiting for the same disk."""
    with Ledger.open(path) as second:
        ahead: list[int] = []

        def append_ahead() -> None:
            ahead.extend(each.position for each in placed(second.append(STREAM, verdicts(2))))

        with writer(path, Disk(append_ahead)) as first:
            (mine,) = placed(first.append(STREAM, verdicts(1, after=2)))

        assert (mine.position, ahead) == (1, [2, 3])
        assert audit(second) == ()


def test_a_known_event_is_acknowledged_after_a_flush_of_ones_own(path: Path) -> None:
    """Another writer placed it, and may still be waiting for the disk."""
    with Ledger.open(path) as other:
        other.append(STREAM, verdicts(1))
    disk = Disk(lambda: None)

    with writer(path, disk) as ledger:
        (receipt,) = ledger.append(STREAM, verdicts(1))

    assert not receipt.is_new
    assert disk.n_flushes == 1


def test_what_is_read_is_on_the_disk_first(filed: Path) -> None:
    """A checkpoint that was printed must not be ahead of the ledger after a power loss."""
    disk = Disk(lambda: None)

    with Ledger(open_for_reading(filed), filed, wal=disk) as ledger:
        head = ledger.head
        flushes = [disk.n_flushes]
        positions = [each.position for each in ledger.read()]
        flushes.append(disk.n_flushes)
        before = ledger.position_at(NOON - timedelta(days=1))
        flushes.append(disk.n_flushes)

    assert (before, head.position, positions[-1]) == (0, N_FILED, N_FILED)
    assert flushes == [1, 2, 3]


def test_a_failing_disk_acknowledges_nothing(filed: Path, failing: WalFile) -> None:
    """An answer that was paid for must not be called safe where it may be lost."""
    with (
        Ledger(connect_for_writing(filed), filed, wal=failing) as ledger,
        pytest.raises(
            DiskFailed, match=r"disk failed while .*broken\.ledger was written: .*repeats nothing"
        ),
    ):
        ledger.append(STREAM, verdicts(1, after=N_FILED))


def test_a_disk_that_failed_once_is_not_believed_again(failing: WalFile, tmp_path: Path) -> None:
    """Linux drops the pages that it could not write, and reports the failure once."""
    with pytest.raises(DiskFailed) as first:
        failing.flush()
    with (tmp_path / "sound").open("wb") as sound:
        os.dup2(sound.fileno(), failing._file)

        with pytest.raises(DiskFailed) as second:
            failing.flush()

    assert str(second.value) == str(first.value)


def test_after_a_failure_nothing_more_is_written(filed: Path, failing: WalFile) -> None:
    """More of what may be lost would be paid for."""
    with (
        closing(connect_for_writing(filed)) as watching,
        Ledger(connect_for_writing(filed), filed, wal=failing) as ledger,
    ):
        for _ in range(3):
            with pytest.raises(DiskFailed):
                ledger.append(STREAM, verdicts(2, after=N_FILED))

        (n_events,) = watching.execute("SELECT count(*) FROM event").fetchone()

    assert n_events == N_FILED + 2


def test_after_a_failure_the_same_append_doubles_nothing(filed: Path, failing: WalFile) -> None:
    """The remedy that the message names: whatever reached the disk is known by its key."""
    with (
        Ledger(connect_for_writing(filed), filed, wal=failing) as ledger,
        pytest.raises(DiskFailed),
    ):
        ledger.append(STREAM, verdicts(1, after=N_FILED))

    with Ledger.open(filed) as ledger:
        (receipt,) = placed(ledger.append(STREAM, verdicts(1, after=N_FILED)))

        assert receipt.position == ledger.head.position == N_FILED + 1
        assert audit(ledger) == ()


def test_a_ledger_behind_a_link_is_flushed_where_it_lies(tmp_path: Path, filed: Path) -> None:
    """So is its lock: two names must not be two locks, nor two runs that pay at once."""
    link = tmp_path / "elsewhere" / "linked.ledger"
    link.parent.mkdir()
    link.symlink_to(filed)

    with Ledger.open(link) as ledger:
        ledger.append(STREAM, verdicts(1, after=N_FILED))

        assert wal_of(link) == wal_of(filed)
        assert list(link.parent.iterdir()) == [link]
