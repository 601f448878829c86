"""A copy of a ledger, taken while it is in use."""

import errno
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ledger.audit import audit
from ledger.errors import CannotWrite, FileTaken, LedgerError
from ledger.exchange import back_up, unfinished_backups
from ledger.recorded import StoredEvent
from ledger.storage.connection import connect_for_writing, immediate_transaction, open_for_reading
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.disks import Disk
from tests.ledger.facts import N_FILED, verdicts
from tests.ledger.hostile import unprivileged


@pytest.fixture
def to(tmp_path: Path) -> Path:
    """Name a backup that is not there yet, in a folder of its own."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "run.ledger"


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system make no hard links, for no test can mount a FAT."""

    def refuse(_source: Path, _to: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)


def rows_of(path: Path) -> list[StoredEvent]:
    """Return what a ledger's file holds, after an audit of it."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        return list(ledger.rows())


def test_a_backup_holds_what_the_ledger_held(filed: Path, to: Path) -> None:
    """It is put back when all else is lost: every byte of every event counts."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    assert rows_of(to) == rows_of(filed)


def test_a_backup_holds_what_still_lies_in_the_wal(path: Path, to: Path) -> None:
    """`cp` of the ledger's file alone leaves the newest events out."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_FILED))

        back_up(ledger, to)

        assert rows_of(to) == list(ledger.rows())


def test_a_backup_leaves_out_what_is_not_yet_committed(filed: Path, to: Path) -> None:
    """Half a batch that another process is writing is no history."""
    with closing(connect_for_writing(filed)) as writer, immediate_transaction(writer):
        writer.execute(
            "INSERT INTO event SELECT 4, zeroblob(16), stream, 4, type, 1, 0, data, leaf, chain"
            " FROM event WHERE position = 3"
        )
        with Ledger.read_only(filed) as ledger:
            back_up(ledger, to)

    assert len(rows_of(to)) == N_FILED


def test_a_backup_is_taken_while_another_writes(path: Path, to: Path) -> None:
    """Nobody stops a run of eight hours for a backup; what it holds is a moment of the run."""
    with Ledger.open(path) as writer, ThreadPoolExecutor(1) as pool:
        writer.append(STREAM, verdicts(1))
        writing = pool.submit(
            lambda: [writer.append(STREAM, [event]) for event in verdicts(200, after=1)]
        )
        for number in range(5):
            with Ledger.read_only(path) as reader:
                back_up(reader, to.with_name(str(number)))
        writing.result()

        everything = list(writer.rows())

    for number in range(5):
        copied = rows_of(to.with_name(str(number)))
        assert copied == everything[: len(copied)]


def test_a_backup_is_one_file_that_needs_no_other(filed: Path, to: Path) -> None:
    """It is moved to a shelf, where nobody may make side files to read it."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    assert rows_of(to) == rows_of(filed)
    assert list(to.parent.iterdir()) == [to]


def test_a_backup_on_a_read_only_shelf_can_be_read(public_folder: Path, filed: Path) -> None:
    """Archives are read-only; that must not make them unreadable."""
    to = public_folder / "run.ledger"
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)
    public_folder.chmod(0o555)

    with unprivileged():
        assert len(rows_of(to)) == N_FILED


def test_a_backup_that_is_put_back_goes_on_as_the_ledger_did(filed: Path, to: Path) -> None:
    """With a rollback journal an acknowledged event may be lost with the power."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    with Ledger.open(to) as restored:
        (receipt,) = restored.append(STREAM, verdicts(1, after=N_FILED))
        (mode,) = restored.connection.execute("PRAGMA journal_mode").fetchone()

        assert receipt.recorded.position == N_FILED + 1
        assert mode == "wal"


def test_a_file_that_is_there_is_never_written_over(filed: Path, to: Path) -> None:
    """Yesterday's backup may be the only good one."""
    to.write_text("yesterday")

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(FileTaken, match="choose another name, or remove it") as caught,
    ):
        back_up(ledger, to)

    assert caught.value.path == to
    assert to.read_text() == "yesterday"
    assert list(to.parent.iterdir()) == [to]


def test_a_name_that_is_taken_meanwhile_is_not_written_over(filed: Path, to: Path) -> None:
    """A link that leads nowhere looks like no file at first; so does one that comes later."""
    to.symlink_to(to.with_name("nowhere"))

    with Ledger.read_only(filed) as ledger, pytest.raises(FileTaken):
        back_up(ledger, to)

    assert list(to.parent.iterdir()) == [to]


@pytest.mark.parametrize("name", ["missing/run.ledger", "file/run.ledger"])
def test_a_place_that_holds_no_file_takes_no_backup(filed: Path, to: Path, name: str) -> None:
    """A mistyped folder ends in a sentence."""
    to.with_name("file").touch()

    with Ledger.read_only(filed) as ledger, pytest.raises(CannotWrite):
        back_up(ledger, to.with_name(name.partition("/")[0]) / "run.ledger")

    assert [each.name for each in to.parent.iterdir()] == ["file"]


def test_a_folder_without_permission_takes_no_backup(public_folder: Path, filed: Path) -> None:
    """The user learns it now, not when the backup is needed."""
    public_folder.chmod(0o555)

    with (
        Ledger.read_only(filed) as ledger,
        unprivileged(),
        pytest.raises(CannotWrite, match="free disk space or fix the permissions"),
    ):
        back_up(ledger, public_folder / "run.ledger")

    assert list(public_folder.iterdir()) == []


def test_what_a_killed_backup_left_is_told_of(filed: Path, to: Path) -> None:
    """It takes room and is no backup; whether somebody is still writing it, only a user knows."""
    half, journal, other = (
        to.with_name(f"{to.name}.0123abcd.unfinished"),
        to.with_name(f"{to.name}.0123abcd.unfinished-journal"),
        to.with_name("other.ledger.0123abcd.unfinished"),
    )
    for each in (half, journal, other):
        each.write_bytes(b"half")

    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    assert len(rows_of(to)) == N_FILED
    assert unfinished_backups(to) == (half, journal)
    assert half.read_bytes() == b"half"


def test_of_two_backups_to_one_name_the_first_to_end_is_kept_whole(path: Path, to: Path) -> None:
    """Two cron jobs meet; what one has not finished must never be named by the other."""

    def end_before_it() -> None:
        assert not to.exists()
        with Ledger.read_only(path) as quicker:
            back_up(quicker, to)

    with Ledger.open(path) as writer:
        writer.append(STREAM, verdicts(N_FILED))
        reader = Ledger(open_for_reading(path), path, wal=Disk(end_before_it))
        with reader, pytest.raises(FileTaken, match="choose another name"):
            back_up(reader, to)

    assert rows_of(to) == rows_of(path)
    assert list(to.parent.iterdir()) == [to]


def test_what_a_backup_holds_is_on_the_disk_first(filed: Path, to: Path) -> None:
    """Another writer's events are seen before the disk has them, and are then told of as kept."""
    disk = Disk(lambda: None)

    with Ledger(open_for_reading(filed), filed, wal=disk) as ledger:
        back_up(ledger, to)

    assert disk.n_flushes == 1


@pytest.mark.usefixtures("without_links")
def test_a_backup_is_made_where_there_are_no_hard_links(filed: Path, to: Path) -> None:
    """A stick with FAT is the first thing that many people keep a copy on."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    assert rows_of(to) == rows_of(filed)
    assert list(to.parent.iterdir()) == [to]


@pytest.mark.usefixtures("without_links")
def test_without_hard_links_nothing_is_written_over(filed: Path, to: Path) -> None:
    """A link that leads nowhere looks like no file at first; so does one that comes later."""
    to.symlink_to(to.with_name("nowhere"))

    with Ledger.read_only(filed) as ledger, pytest.raises(FileTaken):
        back_up(ledger, to)

    assert list(to.parent.iterdir()) == [to]
    assert to.is_symlink()


def test_a_ledger_that_cannot_be_copied_leaves_nothing_behind(filed: Path, to: Path) -> None:
    """A file that looks like a backup and is none is worse than no backup."""
    with Ledger.read_only(filed) as ledger:
        filed.write_bytes(b"")

        with pytest.raises(LedgerError):
            back_up(ledger, to)

    assert list(to.parent.iterdir()) == []


def test_a_ledger_in_memory_can_be_kept(ledger: Ledger, to: Path) -> None:
    """A rehearsal that turned out well."""
    ledger.append(STREAM, verdicts(N_FILED))

    back_up(ledger, to)

    assert rows_of(to) == list(ledger.rows())


def test_a_backup_cannot_be_changed_any_more_than_the_ledger(filed: Path, to: Path) -> None:
    """The guards are part of the file."""
    with Ledger.read_only(filed) as ledger:
        back_up(ledger, to)

    with (
        closing(sqlite3.connect(to)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute("DELETE FROM event")
