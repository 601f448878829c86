"""Files are written whole or not at all, and a ledger lies where locks are kept."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ledger import store
from ledger.errors import CannotWrite, FolderTaken, NetworkFileSystem
from ledger.storage.files import NETWORK_KINDS, network_kind, write_files, write_whole
from ledger.store import Ledger
from tests.support.builders.commands import PowerCut

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

    with pytest.raises(FolderTaken, match="headline exists already"):
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

    with pytest.raises(CannotWrite, match="free disk space or fix the permissions"):
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


def cut_short() -> Iterator[bytes]:
    """Yield a line, and fail."""
    yield b"one\n"
    raise PowerCut


@pytest.mark.parametrize(
    "name",
    [
        "missing/events.jsonl",
        "folder",
        "file/events.jsonl",
    ],
)
def test_a_place_that_refuses_a_file_is_told_as_ours(tmp_path: Path, name: str) -> None:
    """A mistyped folder, a folder of that name, a file where a folder should be."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    with pytest.raises(CannotWrite, match="free disk space or fix the permissions"):
        write_whole(tmp_path / name, [b"one\n"])

    assert contents(tmp_path) == {"file": b""}


LOCAL = "/dev/sda1 / ext4 rw,relatime 0 0"
NFS = "server:/export /mnt/nfs nfs4 rw,vers=4.2 0 0"


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """Name a table of mounts that is not there yet."""
    return tmp_path / "mounts"


def kind_at(place: str | Path, mounts: Path, *lines: str) -> str | None:
    """Return the kind of a place under these mounts."""
    mounts.write_text("".join(f"{line}\n" for line in lines))
    return network_kind(Path(place), mounts)


def test_a_local_disk_is_no_network(mounts: Path) -> None:
    """Nearly every ledger lies there, and nothing is to be said."""
    assert kind_at("/home/me/run.ledger", mounts, LOCAL, NFS) is None


@pytest.mark.parametrize("kind", sorted(NETWORK_KINDS))
def test_a_network_is_named_by_its_kind(mounts: Path, kind: str) -> None:
    """The file and its folders need not be there yet."""
    mounted = f"server:/export /mnt/net {kind} rw 0 0"

    found = kind_at("/mnt/net/new/run.ledger", mounts, LOCAL, mounted)

    assert found == kind


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/mnt/nfs/run.ledger", "nfs4"),
        ("/mnt/nfs/local/run.ledger", None),
        ("/mnt/nfs/local/far/run.ledger", "cifs"),
    ],
)
def test_the_innermost_mount_decides(mounts: Path, place: str, expected: str | None) -> None:
    """A scratch disk below a network home is local, whatever is around it."""
    local = "/dev/sdb1 /mnt/nfs/local xfs rw 0 0"
    far = "//server/share /mnt/nfs/local/far cifs rw 0 0"

    assert kind_at(place, mounts, far, local, LOCAL, NFS) == expected


def test_the_last_of_two_mounts_at_one_place_decides(mounts: Path) -> None:
    """What is mounted over another hides it."""
    over = "tmpfs /mnt/nfs tmpfs rw 0 0"

    assert kind_at("/mnt/nfs/run.ledger", mounts, LOCAL, NFS, over) is None


def test_a_place_whose_name_only_begins_alike_is_another(mounts: Path) -> None:
    """Names are compared whole: /mnt/nfs-backup is not on /mnt/nfs."""
    assert kind_at("/mnt/nfs-backup/run.ledger", mounts, LOCAL, NFS) is None


@pytest.mark.parametrize(
    ("escaped", "place"),
    [(r"/mnt/my\040share", "/mnt/my share"), (r"/mnt/a\134b\011c", "/mnt/a\\b\tc")],
)
def test_escaped_names_are_understood(mounts: Path, escaped: str, place: str) -> None:
    """The table is split at spaces, so a space in a name is spelt otherwise."""
    mounted = f"server:/export {escaped} nfs rw 0 0"

    assert kind_at(f"{place}/run.ledger", mounts, LOCAL, mounted) == "nfs"


def test_a_link_lies_where_it_leads(mounts: Path, tmp_path: Path) -> None:
    """`data -> /net/data` in a local folder is a common way to keep large files away."""
    (tmp_path / "net").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "net")

    found = kind_at(tmp_path / "near/run.ledger", mounts, LOCAL, f"s:/e {tmp_path}/net nfs rw 0 0")

    assert found == "nfs"


def test_a_name_that_is_no_text_disturbs_nobody(mounts: Path) -> None:
    """Somebody else's mount must not keep anyone from opening a ledger."""
    mounts.write_bytes(b"s:/e /mnt/\xff nfs rw 0 0\n" + NFS.encode() + b"\n")

    assert network_kind(Path("/mnt/nfs/run.ledger"), mounts) == "nfs4"


def test_without_a_table_of_mounts_nothing_is_known(mounts: Path) -> None:
    """Other systems than Linux have none; a ledger can be used there all the same."""
    assert network_kind(Path("/anywhere/run.ledger"), mounts) is None


def test_a_ledger_on_a_network_is_refused_unless_allowed(
    path: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that do not hold lose paid events in silence: better no run than such a run."""
    mounts.write_text(f"s:/e {path.parent} nfs4 rw 0 0\n")
    # No test can mount a network; what looks at the mounts is given another table.
    monkeypatch.setattr(store, "network_kind", partial(network_kind, mounts=mounts))

    with pytest.raises(NetworkFileSystem, match=r"\(nfs4\).* keep the ledger on a local") as caught:
        Ledger.open(path)

    assert (caught.value.path, caught.value.kind) == (path, "nfs4")
    assert not path.exists()
    with Ledger.open(path, allow_network=True) as ledger:
        assert ledger.head.position == 0
