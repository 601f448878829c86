"""What is told of a commit is on the disk: whenever the power is cut, it is there."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple

import numpy as np
import pytest

from ledger.audit import audit
from ledger.errors import DiskFailed, LedgerError
from ledger.recorded import StoredEvent
from ledger.storage.connection import connect_for_writing, open_for_reading, prepare
from ledger.storage.lock import FileLock
from ledger.storage.wal import WalFile, wal_of
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, NOON, STREAM, placed, verdicts
from tests.support.faults.disks import Disk, Sync, SyncFolder, Write
from tests.support.faults.power_loss import Flushes, Recording, Run, after_power_loss, without_syncs


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


N_STATES: Final = 300
N_STATES_BY_NIGHT: Final = 2_000
N_STATES_WHEN_UNSAFE: Final = 100  # enough: one in seven and more are found out
N_STATES_PER_RUN: Final = 50

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # states are made up, and need no disk
_IN_MEMORY: Final = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None

LEDGER_FILE: Final = 1  # the first that the disk created

Finding = Literal["whole", "lost", "corrupt"]


class PowerLoss(NamedTuple):
    """When the power went, and what was found afterwards."""

    run: int
    n_operations: int  # that the disk had done
    finding: Finding


def power_losses(
    folder: Path, flushes: Flushes, n_states: int, *, disk_lies: bool = False
) -> Iterator[PowerLoss]:
    """Take the power from runs at random moments, and yield what is found."""
    for run in range(n_states // N_STATES_PER_RUN):
        rng = np.random.default_rng(run)
        recording = Run(folder / f"{run}.ledger", flushes, rng).record()
        states = different_states(recording, rng, disk_lies=disk_lies)
        for at, files in islice(states, N_STATES_PER_RUN):
            yield PowerLoss(run, at, found_in(files, recording, at))


def different_states(
    recording: Recording, rng: np.random.Generator, *, disk_lies: bool
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield for ever how much the disk had done, and the files that the power loss left."""
    seen: set[tuple[int, int]] = set()
    while True:
        at = int(rng.integers(1, len(recording.log), endpoint=True))
        done = recording.log[:at]
        files = after_power_loss(without_syncs(done) if disk_lies else done, rng)
        state = (recording.acknowledged_at(at), hash(frozenset(files.items())))
        if state not in seen:
            seen.add(state)
            yield at, files


def found_in(files: dict[str, bytes], recording: Recording, n_operations: int) -> Finding:
    """Open what is left as a resumed run would, and compare it with what was acknowledged."""
    with TemporaryDirectory(dir=_IN_MEMORY) as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        rows = sound_rows(Path(folder, recording.name))
    if rows is None or not recording.began_with(rows):
        return "corrupt"
    return "whole" if len(rows) >= recording.acknowledged_at(n_operations) else "lost"


def sound_rows(path: Path) -> tuple[StoredEvent, ...] | None:
    """Return the events as stored, or None where SQLite or the audit finds a fault."""
    try:
        with Ledger.open(path) as ledger:
            is_whole = is_sound(path) and not audit(ledger)
            return tuple(ledger.rows()) if is_whole else None
    except (LedgerError, sqlite3.DatabaseError):
        return None


def is_sound(path: Path) -> bool:
    """Ask SQLite, before anything relies on the types that the table declares."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def findings(losses: Iterator[PowerLoss]) -> Counter[Finding]:
    """Count what was found."""
    return Counter(each.finding for each in losses)


@pytest.mark.parametrize(
    "n_states", [N_STATES, pytest.param(N_STATES_BY_NIGHT, marks=pytest.mark.nightly)]
)
def test_a_power_loss_loses_no_acknowledged_event(tmp_path: Path, n_states: int) -> None:
    """Each verdict is paid for: what was said to be recorded is there when the power is back."""
    losses = list(power_losses(tmp_path, "all", n_states))

    assert len(losses) == n_states
    assert [each for each in losses if each.finding != "whole"] == []


def test_without_flushes_of_commits_a_power_loss_loses_a_tail(tmp_path: Path) -> None:
    """The reason for them, and a proof that these tests would see a lost event."""
    found = findings(power_losses(tmp_path, "checkpoints", N_STATES_WHEN_UNSAFE))

    assert found["lost"] > 0
    assert found["corrupt"] == 0


def test_without_any_flush_a_power_loss_corrupts(tmp_path: Path) -> None:
    """A proof that these tests would see a damaged file."""
    found = findings(power_losses(tmp_path, "none", N_STATES_WHEN_UNSAFE))

    assert found["corrupt"] > 0
    assert found["lost"] > 0


def test_a_disk_that_ignores_sync_is_found_out(tmp_path: Path) -> None:
    """A flush is worth what the disk's word is worth; the tests must not take SQLite's for it."""
    found = findings(power_losses(tmp_path, "all", N_STATES_WHEN_UNSAFE, disk_lies=True))

    assert found["corrupt"] > 0
    assert found["lost"] > 0


def test_the_log_tells_all_that_is_in_the_files(tmp_path: Path) -> None:
    """A write that went past the recording disk would be lost in no state."""
    rng = np.random.default_rng(0)
    recording = Run(tmp_path / "run.ledger", "all", rng).record()

    files = after_power_loss((*recording.log, Sync(LEDGER_FILE), SyncFolder()), rng)

    assert files == {each.name: each.read_bytes() for each in tmp_path.iterdir()}


def test_the_recorded_run_checkpoints_between_its_appends(tmp_path: Path) -> None:
    """Only a checkpoint overwrites what is in the ledger's own file, so there must be some."""
    recording = Run(tmp_path / "run.ledger", "all", np.random.default_rng(0)).record()
    _, first, *_, last = (each.n_operations for each in recording.acknowledged)

    written = [each.file for each in recording.log[first:last] if isinstance(each, Write)]

    assert LEDGER_FILE in written
    assert set(written) > {LEDGER_FILE}
