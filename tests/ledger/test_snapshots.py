"""Stored states of views: of use while they fit, in nobody's way when they do not."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.identity import Digest
from ledger.snapshots import Snapshot, Snapshots
from ledger.store import Ledger
from tests.builders import STREAM, key
from tests.ledger.facts import N_FILED, verdicts
from tests.ledger.hostile import unprivileged


def snapshot(
    projection: str = "standings",
    *,
    version: int = 1,
    position: int = 3,
    chain: Digest = key("link"),  # noqa: B008  # a digest never changes
    state: bytes = b"{}",
) -> Snapshot:
    """Return a snapshot."""
    return Snapshot(projection, version, position, chain, state)


def kept(path: Path, *snapshots: Snapshot) -> Path:
    """Keep snapshots beside a ledger, and return their file."""
    with Snapshots.beside(path) as side:
        side.save(snapshots)
    return path.with_name(f"{path.name}.views")


def test_a_state_is_given_back_as_it_was_kept(path: Path) -> None:
    """A view goes on from it in the next process."""
    state = snapshot(state=bytes(range(256)))
    kept(path, state)

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) == state


def test_each_projection_has_its_own_state(path: Path) -> None:
    """One pass brings many up to date; none may be given another's."""
    kept(path, snapshot("standings", state=b"1"), snapshot("progress", state=b"2"))

    with Snapshots.beside(path) as side:
        assert side.load("progress", 1) == snapshot("progress", state=b"2")
        assert side.load("matches", 1) is None


def test_a_newer_state_takes_the_place_of_an_older(path: Path) -> None:
    """The file grows with the views, not with time."""
    kept(path, snapshot(position=3))
    views = kept(path, snapshot(position=9))

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) == snapshot(position=9)
    with closing(sqlite3.connect(views)) as connection:
        assert connection.execute("SELECT count(*) FROM snapshot_2").fetchone() == (1,)


@pytest.mark.parametrize("version", [1, 3])
def test_a_state_of_other_code_is_stale(path: Path, version: int) -> None:
    """Its bytes may mean something else to the projection as it is now."""
    kept(path, snapshot(version=2))

    with Snapshots.beside(path) as side:
        assert side.load("standings", version) is None


def test_a_state_names_the_history_that_it_was_folded_from(tmp_path: Path) -> None:
    """A ledger that was put back, and went on otherwise, has another history at this place."""
    one, other = tmp_path / "one", tmp_path / "other"
    for path, after in ((one, 0), (other, 1)):
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, verdicts(N_FILED, after=after))
    with Ledger.read_only(one) as ledger:
        kept(one, snapshot(position=ledger.head.position, chain=ledger.head.chain))

    with Snapshots.beside(one) as side:
        found = side.load("standings", 1)

    assert found is not None
    with Ledger.read_only(one) as ours, Ledger.read_only(other) as theirs:
        assert ours.chain_at(found.position) == found.chain
        assert theirs.chain_at(found.position) != found.chain


def test_states_may_be_deleted_at_any_time(path: Path) -> None:
    """They hold nothing that the ledger does not."""
    kept(path, snapshot()).unlink()

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None


@pytest.mark.parametrize("damage", [b"not SQLite " * 1_000, b"short"])
def test_a_damaged_file_is_begun_again(path: Path, damage: bytes) -> None:
    """What can be folded again is no reason to keep a user from the standings."""
    views = kept(path, snapshot())
    views.write_bytes(damage)

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None
        side.save([snapshot()])

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) == snapshot()


def test_damage_behind_the_first_page_is_no_different(path: Path) -> None:
    """The table's name is read when the file is opened, its rows only later."""
    views = kept(path, *(snapshot(str(n), state=bytes(2_000)) for n in range(20)))
    content = views.read_bytes()
    views.write_bytes(content[:4_096] + bytes(len(content) - 4_096))

    with Snapshots.beside(path) as side:
        assert side.load("0", 1) is None
        side.save([snapshot()])
        assert side.load("standings", 1) == snapshot()


def test_a_bit_that_flipped_within_a_state_makes_it_stale(path: Path) -> None:
    """A count of 9 would read as one of 8, and nothing else would tell."""
    views = kept(path, snapshot(state=b'{"responses":9}'))
    views.write_bytes(views.read_bytes().replace(b'"responses":9', b'"responses":8'))

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None
        side.save([snapshot()])
        assert side.load("standings", 1) == snapshot()


def test_a_name_that_is_no_text_any_more_makes_its_state_stale(path: Path) -> None:
    """SQLite finds such a row all the same, and only then cannot decode it."""
    views = kept(path, snapshot(chain=Digest("link")))
    views.write_bytes(views.read_bytes().replace(b"link", b"\xff\xff\xff\xff"))

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None


def test_noise_anywhere_in_the_file_stops_nobody(path: Path) -> None:
    """Whatever it hits, header, names, index or rows: what is not whole is folded again."""
    whole = snapshot(state=bytes(3_000))
    views = kept(path, whole)
    content = views.read_bytes()
    noise = bytes(n * 167 % 256 for n in range(64))
    for place in range(0, len(content), len(noise)):
        views.write_bytes(content[:place] + noise + content[place + len(noise) :])

        with Snapshots.beside(path) as side:
            assert side.load("standings", 1) in {None, whole}
            side.save([whole])


def test_a_damaged_file_that_cannot_be_removed_keeps_nothing(public_folder: Path) -> None:
    """An archive lies on a read-only shelf, and its disk grows old."""
    path = public_folder / "run.ledger"
    kept(path, snapshot()).write_bytes(b"not SQLite " * 1_000)
    public_folder.chmod(0o555)

    with unprivileged(), Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None


def test_states_that_another_tourney_kept_are_left_alone(path: Path) -> None:
    """A later tourney may keep states otherwise; this one can fold them itself."""
    with closing(sqlite3.connect(path.with_name(f"{path.name}.views"))) as connection:
        connection.execute("CREATE TABLE snapshot_3 (projection TEXT PRIMARY KEY, state BLOB)")

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None
        side.save([snapshot()])
        assert side.load("standings", 1) == snapshot()


def test_a_folder_that_cannot_be_written_keeps_nothing(public_folder: Path) -> None:
    """Standings of an archived ledger are folded each time, without a word."""
    public_folder.chmod(0o555)

    with unprivileged(), Snapshots.beside(public_folder / "run.ledger") as side:
        side.save([snapshot()])

        assert side.load("standings", 1) == snapshot()
    assert list(public_folder.iterdir()) == []


def test_states_on_a_read_only_shelf_are_read_and_not_kept(public_folder: Path) -> None:
    """A ledger is archived with its views, and asked later about an earlier time."""
    path = public_folder / "run.ledger"
    views = kept(path, snapshot())
    views.chmod(0o444)
    public_folder.chmod(0o555)

    with unprivileged(), Snapshots.beside(path) as side:
        assert side.load("standings", 1) == snapshot()
        side.save([snapshot(position=9)])


def test_a_folder_where_the_file_belongs_keeps_nothing(path: Path) -> None:
    """Whoever put it there has a reason; the views can do without."""
    path.with_name(f"{path.name}.views").mkdir()

    with Snapshots.beside(path) as side:
        assert side.load("standings", 1) is None
