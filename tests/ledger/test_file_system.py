"""Which file systems a ledger must not lie on."""

from functools import partial
from pathlib import Path

import pytest

from ledger import store
from ledger.errors import NetworkFileSystem
from ledger.storage.files import NETWORK_KINDS, network_kind
from ledger.store import Ledger

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
