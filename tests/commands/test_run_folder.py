"""Writing a run's folder: whole, or not at all."""

from pathlib import Path

import pytest

from commands.errors import FolderTaken
from commands.run_folder import write_files
from ledger.errors import CannotWrite

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


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    """It is somebody's, and nothing half written may lie beside it."""
    (tmp_path / "headline").write_bytes(b"mine")

    with pytest.raises(FolderTaken, match="headline is there already"):
        write_files(tmp_path / "headline", FILES)

    assert contents(tmp_path) == {"headline": b"mine"}


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """A run's artifacts are never overwritten."""
    write_files(tmp_path / "headline", {"manifest.json": b"old"})

    with pytest.raises(FolderTaken):
        write_files(tmp_path / "headline", FILES)

    assert contents(tmp_path) == {"headline/manifest.json": b"old"}


def test_a_file_above_the_folder_is_told_as_ours(tmp_path: Path) -> None:
    """`runs` may be a file, or on a disk that is full or read-only."""
    (tmp_path / "runs").touch()

    with pytest.raises(CannotWrite, match="make room or permission"):
        write_files(tmp_path / "runs" / "headline", FILES)

    assert contents(tmp_path) == {"runs": b""}
