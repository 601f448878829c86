"""Files are written whole or not at all."""

import os
import sqlite3
from collections.abc import Iterator
from errno import EACCES, EDQUOT, EIO, ENOENT, ENOSPC, EROFS
from pathlib import Path

import pytest

from ledger.errors import CannotWrite, FolderTaken
from ledger.storage.files import cannot_write, write_files, write_whole


class PowerCut(Exception):
    """The process ends where nobody expected it to."""


FILES = {"manifest.json": b"{}", "verdicts/factuality.jsonl": b"\x00\n"}


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones included."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_files_are_written_byte_for_byte_in_their_folders(tmp_path: Path) -> None:
    """A replay compares bytes, so no line end may be translated."""
    write_files(tmp_path / "runs" / "headline", FILES)

    assert contents(tmp_path / "runs" / "headline") == FILES
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["headline"]


def test_what_a_killed_process_left_behind_is_replaced(tmp_path: Path) -> None:
    """Its draft may hold half a file."""
    draft = tmp_path / ".headline.draft"
    draft.mkdir()
    (draft / "half.json").write_bytes(b"{")

    write_files(tmp_path / "headline", FILES)

    assert contents(tmp_path) == {f"headline/{name}": content for name, content in FILES.items()}


@pytest.mark.parametrize("name", ["headline", "headline/manifest.json"])
def test_what_is_there_is_left_alone(tmp_path: Path, name: str) -> None:
    """A run's artifacts are never overwritten, nor is somebody's file in their place."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"mine")

    with pytest.raises(FolderTaken, match="headline exists already"):
        write_files(tmp_path / "headline", FILES)

    assert contents(tmp_path) == {name: b"mine"}


def test_a_file_above_the_folder_is_told_as_ours(tmp_path: Path) -> None:
    """`runs` may be a file, or on a disk that is full or read-only."""
    (tmp_path / "runs").touch()

    with pytest.raises(CannotWrite, match="correct the path, then"):
        write_files(tmp_path / "runs" / "headline", FILES)

    assert contents(tmp_path) == {"runs": b""}


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """An export is written over the last one, whole."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"older, and longer than what follows\n")

    write_whole(file, [b"one\n", b"two\n"])

    assert contents(tmp_path) == {"events.jsonl": b"one\ntwo\n"}


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path) -> None:
    """Half an export looks like a short ledger."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"older\n")

    with pytest.raises(PowerCut):
        write_whole(file, cut_short())

    assert contents(tmp_path) == {"events.jsonl": b"older\n"}


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """Whoever reads at its other end would wait for ever; as root, a device would be lost."""
    pipe = tmp_path / "events.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write_whole(pipe, [b"one\n", b"two\n"])

    assert os.read(reader, 100) == b"one\ntwo\n"
    assert pipe.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("name", ["events.jsonl", "not-there-yet.jsonl"])
def test_a_link_leads_to_the_file_as_before(tmp_path: Path, name: str) -> None:
    """What else leads to that file would go on showing the older one."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "events.jsonl").write_bytes(b"older\n")
    link = tmp_path / "latest.jsonl"
    link.symlink_to(Path("store") / name)

    write_whole(link, [b"one\n"])

    assert link.is_symlink()
    assert (tmp_path / "store" / name).read_bytes() == b"one\n"


@pytest.fixture
def on_the_disk(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """Give what is flushed, in order, with the files that had their names by then."""
    flushed: list[tuple[str, set[str]]] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        fsync(handle)
        place = Path(f"/proc/self/fd/{handle}").resolve()
        beside = place if place.is_dir() else place.parent
        flushed.append((place.name, {each.name for each in beside.iterdir()}))

    monkeypatch.setattr(os, "fsync", note)
    return flushed


def test_a_folder_gets_its_name_once_all_of_it_is_on_the_disk(
    tmp_path: Path, on_the_disk: list[tuple[str, set[str]]]
) -> None:
    """A power loss leaves all of a run or nothing, never a manifest without content."""
    write_files(tmp_path / "headline", FILES)

    names = [name for name, _ in on_the_disk]
    assert sorted(names[:2]) == ["factuality.jsonl", "manifest.json"]
    assert sorted(names[2:4]) == [".headline.draft", "verdicts"]
    assert on_the_disk[4:] == [(tmp_path.name, {"headline"})]


def test_a_file_gets_its_name_once_it_is_on_the_disk(
    tmp_path: Path, on_the_disk: list[tuple[str, set[str]]]
) -> None:
    """An export that took the place of the last one must not be empty after a power loss."""
    (tmp_path / "events.jsonl").write_bytes(b"older\n")

    write_whole(tmp_path / "events.jsonl", [b"one\n"])

    draft = ".events.jsonl.draft"
    assert on_the_disk == [(draft, {draft, "events.jsonl"}), (tmp_path.name, {"events.jsonl"})]


def cut_short() -> Iterator[bytes]:
    """Yield a line, and fail."""
    yield b"one\n"
    raise PowerCut


@pytest.mark.parametrize("name", ["missing/events.jsonl", "folder", "file/events.jsonl"])
def test_a_place_that_refuses_a_file_is_told_as_ours(tmp_path: Path, name: str) -> None:
    """A mistyped folder, a folder of that name, a file where a folder should be."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    with pytest.raises(CannotWrite, match=r"correct the path, then|name a file"):
        write_whole(tmp_path / name, [b"one\n"])

    assert contents(tmp_path) == {"file": b""}


def test_a_folder_that_is_not_there_is_told_by_the_name_of_the_file(tmp_path: Path) -> None:
    """The draft beside it is ours, and nobody knows it."""
    with pytest.raises(CannotWrite) as caught:
        write_whole(tmp_path / "nowhere" / "events.jsonl", [b"one\n"])

    assert str(caught.value) == (
        f"cannot write {tmp_path}/nowhere/events.jsonl: No such file or directory;"
        " this step recorded nothing: correct the path, then run the command again"
    )


def of_sqlite(name: str) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(ENOSPC, "No space left on device"), "free disk space"),
        (OSError(EDQUOT, "Disk quota exceeded"), "free disk space"),
        (of_sqlite("SQLITE_FULL"), "free disk space"),
        (OSError(EACCES, "Permission denied"), "fix the permissions of the file and its folder"),
        (of_sqlite("SQLITE_READONLY_DIRECTORY"), "fix the permissions of the file and its folder"),
        (OSError(EROFS, "Read-only file system"), "choose a file system that can be written"),
        (OSError(ENOENT, "No such file or directory"), "correct the path"),
        (of_sqlite("SQLITE_CANTOPEN"), "check that its folder exists and can be written"),
        (of_sqlite("SQLITE_BUSY"), "wait for the program that uses it"),
        (OSError(EIO, os.strerror(EIO)), "check the disk and its permissions"),
        (sqlite3.OperationalError("no code"), "check the disk and its permissions"),
    ],
)
def test_each_failure_has_its_own_remedy(error: Exception, remedy: str) -> None:
    """Who frees disk space for want of a permission loses an hour, and perhaps a file."""
    said = str(cannot_write(Path("x.db"), error))

    assert said.endswith(f"recorded nothing: {remedy}, then run the command again")
