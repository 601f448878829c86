"""A ledger lies where locks hold, under one name, and stays there while it is written."""

from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from pathlib import Path

import pytest

from ledger import store
from ledger.auditing.audit import audit
from ledger.errors import HardLinked, LedgerMoved, NetworkFileSystem
from ledger.storage.files import beside, wal_of
from ledger.storage.place import foreign_kind
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts

LOCAL = "/dev/sda1 / ext4 rw,relatime 0 0"
NFS = "server:/export /mnt/nfs nfs4 rw,vers=4.2 0 0"


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """Name a table of mounts that is not there yet."""
    return tmp_path / "mounts"


def kind_at(place: str | Path, mounts: Path, *lines: str) -> str | None:
    """Return the kind of a place under these mounts."""
    mounts.write_text("".join(f"{line}\n" for line in lines))
    return foreign_kind(Path(place), mounts)


FOREIGN_KINDS = ("nfs4", "cifs", "9p", "virtiofs", "fuse", "fuse.sshfs", "invented-tomorrow")


@pytest.mark.parametrize("kind", FOREIGN_KINDS)
def test_what_is_not_known_to_be_local_is_named_by_its_kind(mounts: Path, kind: str) -> None:
    """The file and its folders need not be there yet."""
    mounted = f"server:/export /mnt/net {kind} rw 0 0"

    found = kind_at("/mnt/net/new/run.ledger", mounts, LOCAL, mounted)

    assert found == kind


IN_NFS = "/dev/sdb1 /mnt/nfs/local xfs rw 0 0"
IN_LOCAL = "//server/share /mnt/nfs/local/far cifs rw 0 0"
OVER_NFS = "tmpfs /mnt/nfs tmpfs rw 0 0"
SANDBOX, SHARED = "none / 9p rw 0 0", "host /host 9p rw 0 0"
SPACES, BACKSLASH = (f"s:/e {name} nfs rw 0 0" for name in (r"/my\040share", r"/a\134b\011c"))


@pytest.mark.parametrize(
    ("place", "expected", "mounted"),
    [
        ("/home/me", None, [LOCAL, NFS]),
        ("/home/me", None, [NFS]),  # below no mount: a program in a cage of its own may see none
        ("/mnt/nfs", "nfs4", [IN_LOCAL, IN_NFS, LOCAL, NFS]),
        ("/mnt/nfs/local", None, [IN_LOCAL, IN_NFS, LOCAL, NFS]),
        ("/mnt/nfs/local/far", "cifs", [IN_LOCAL, IN_NFS, LOCAL, NFS]),
        ("/mnt/nfs", None, [LOCAL, NFS, OVER_NFS]),  # what is mounted over another hides it
        ("/mnt/nfs-backup", None, [LOCAL, NFS]),  # names are compared whole
        ("/my share", "nfs", [LOCAL, SPACES]),
        ("/a\\b\tc", "nfs", [LOCAL, BACKSLASH]),
        ("/var", None, [SANDBOX, SHARED]),  # the root of a sandbox is its own disk
        ("/host", "9p", [SANDBOX, SHARED]),
        ("/var", "nfs4", ["server:/root / nfs4 rw 0 0"]),
    ],
)
def test_the_innermost_mount_decides(
    mounts: Path, place: str, expected: str | None, mounted: list[str]
) -> None:
    """A scratch disk below a network home is local, whatever is around it."""
    assert kind_at(f"{place}/run.ledger", mounts, *mounted) == expected


def test_a_link_lies_where_it_leads(mounts: Path, tmp_path: Path) -> None:
    """`data -> /net/data` in a local folder is a common way to keep large files away."""
    (tmp_path / "net").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "net")

    found = kind_at(tmp_path / "near/run.ledger", mounts, LOCAL, f"s:/e {tmp_path}/net nfs rw 0 0")

    assert found == "nfs"


def test_a_name_that_is_no_text_disturbs_nobody(mounts: Path) -> None:
    """Somebody else's mount must not keep anyone from opening a ledger."""
    mounts.write_bytes(b"s:/e /mnt/\xff nfs rw 0 0\n" + NFS.encode() + b"\n")

    assert foreign_kind(Path("/mnt/nfs/run.ledger"), mounts) == "nfs4"


def test_without_a_table_of_mounts_nothing_is_known(mounts: Path) -> None:
    """Other systems than Linux have none; a ledger can be used there all the same."""
    assert foreign_kind(Path("/anywhere/run.ledger"), mounts) is None


def test_a_ledger_on_a_network_is_refused_unless_allowed(
    path: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that do not hold lose paid events in silence: better no run than such a run."""
    mounts.write_text(f"s:/e {path.parent} nfs4 rw 0 0\n")
    # No test can mount a network; what looks at the mounts is given another table.
    monkeypatch.setattr(store, "foreign_kind", partial(foreign_kind, mounts=mounts))

    with pytest.raises(
        NetworkFileSystem, match=r"\(nfs4\): .* keep the ledger on a local"
    ) as caught:
        Ledger.open(path)

    assert (caught.value.path, caught.value.kind) == (path, "nfs4")
    assert not path.exists()
    with Ledger.open(path, allow_network=True) as ledger:
        assert ledger.head.position == 0
        with Ledger.read_only(path) as reader:  # a copy that lies there for others does no harm
            assert reader.head.position == 0


def test_a_file_of_two_names_is_not_written(filed: Path) -> None:
    """Each name would have a log of its own, and the file two histories."""
    other = filed.with_name("other.ledger")
    other.hardlink_to(filed)
    before = filed.read_bytes()

    for name in (filed, other):
        with pytest.raises(HardLinked, match=r"has 2 hard links.* `tourney backup FILE`"):
            Ledger.open(name)

    assert filed.read_bytes() == before
    assert sorted(filed.parent.iterdir()) == [other, filed, beside(filed, ".lock")]
    with Ledger.read_only(other) as ledger:
        assert ledger.head.position == N_FILED


def test_a_symbolic_link_is_no_second_name(filed: Path) -> None:
    """It leads to the file, and so to its log."""
    link = filed.with_name("latest.ledger")
    link.symlink_to(filed)

    with Ledger.open(link) as ledger:
        link.unlink()
        (receipt,) = ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert receipt.recorded.position == N_FILED + 1


def test_a_name_that_is_added_while_a_ledger_is_written_stops_it(filed: Path) -> None:
    """Once it is removed again, the writer goes on."""
    other = filed.with_name("other.ledger")
    with Ledger.open(filed) as ledger:
        other.hardlink_to(filed)
        with pytest.raises(HardLinked):
            ledger.append(STREAM, verdicts(1, after=N_FILED))
        other.unlink()

        ledger.append(STREAM, verdicts(1, after=N_FILED))

        assert ledger.head.position == N_FILED + 1


def move_away(path: Path) -> None:
    """Rename the ledger alone; its log stays behind."""
    path.rename(path.with_name("moved.ledger"))


def move_folder(path: Path) -> None:
    """Rename the folder, with all that is in it."""
    path.parent.rename(path.parent.with_name("moved"))


def put_another_there(path: Path) -> None:
    """Rename the ledger, and let a text take its name."""
    move_away(path)
    path.write_text("mine")


def delete_the_log(path: Path) -> None:
    """Remove what looks like a temporary file, and holds the newest events."""
    wal_of(path).unlink()


@pytest.mark.parametrize("change", [move_away, move_folder, put_another_there, delete_the_log])
def test_a_ledger_that_is_moved_stops_its_writer_and_keeps_its_events(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """What is appended to a file that nobody finds is lost; what was acknowledged must not be."""
    path = tmp_path / "place" / "run.ledger"
    path.parent.mkdir()
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(2))
        change(path)
        for _ in range(2):
            with pytest.raises(LedgerMoved, match="was moved, deleted or replaced while") as caught:
                ledger.append(STREAM, verdicts(1, after=2))

    assert caught.value.path == path
    assert f"while {path} was being written; this step recorded nothing" in str(caught.value)
    moved, *_ = *tmp_path.glob("*/moved.ledger"), *tmp_path.glob("*/run.ledger")
    with Ledger.read_only(moved) as ledger:
        assert [each.event for each in ledger.read()] == list(verdicts(2))
        assert audit(ledger) == ()
    assert not path.exists() or path == moved or path.read_text() == "mine"


def test_a_deleted_ledger_stops_its_writer(filed: Path) -> None:
    """Nothing is acknowledged that is gone when the process ends; the name stays free."""
    with Ledger.open(filed) as ledger:
        filed.unlink()

        with pytest.raises(LedgerMoved) as caught:
            ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert caught.value.gone == filed
    assert not filed.exists()


def test_a_ledger_that_is_put_back_is_written_again(filed: Path) -> None:
    """The remedy that the message names."""
    with Ledger.open(filed) as ledger:
        move_away(filed)
        with pytest.raises(LedgerMoved):
            ledger.append(STREAM, verdicts(1, after=N_FILED))
        filed.with_name("moved.ledger").rename(filed)

        (receipt,) = ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert receipt.recorded.position == N_FILED + 1


def test_who_asks_for_a_ledger_alone_holds_off_others_and_is_stopped_without_its_lock(
    filed: Path,
) -> None:
    """Two that do the same work at once would both pay for it."""
    work = beside(filed, ".work")
    with Ledger.open(filed) as ledger:
        with ledger.alone(), work.open() as other:
            with pytest.raises(BlockingIOError):
                flock(other, LOCK_EX | LOCK_NB)
            ledger.append(STREAM, verdicts(1, after=N_FILED))
            work.unlink()
            with pytest.raises(LedgerMoved):
                ledger.append(STREAM, verdicts(1, after=N_FILED + 1))
        work.touch()
        with ledger.alone(), Ledger.read_only(filed) as reader:
            assert reader.head.position == N_FILED + 1
        with work.open() as other:
            flock(other, LOCK_EX | LOCK_NB)
