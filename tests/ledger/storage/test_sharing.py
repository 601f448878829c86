"""Several users share a ledger: one writes, others read, and nobody gets in the way."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger.errors import ChangedMeanwhile
from ledger.exchange import back_up
from ledger.storage.files import beside
from ledger.storage.sharing import kept_open
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.faults.hostile import NOBODY, SOMEBODY_ELSE, unprivileged

ROOT = Path(__file__).parents[3]
needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture
def shared(public_folder: Path) -> Path:
    """Give a ledger of one user in a folder that all may write."""
    path = public_folder / "run.ledger"
    with unprivileged(NOBODY):
        append(path, N_FILED)
    return path


def append(path: Path, n_events: int) -> int:
    """Append the next events; return the last position."""
    with Ledger.open(path) as ledger:
        after = ledger.head.position
        return ledger.append(STREAM, verdicts(n_events, after=after))[-1].recorded.position


def owners(path: Path) -> dict[str, int]:
    """Return who owns each file beside a ledger."""
    return {each.name: each.stat().st_uid for each in path.parent.iterdir()}


@needs_two_users
def test_who_reads_anothers_ledger_leaves_nothing_there(shared: Path) -> None:
    """A -wal of the reader's would keep the owner from writing, and no reader removes it."""
    before = owners(shared)

    with unprivileged(SOMEBODY_ELSE), Ledger.read_only(shared) as ledger:
        assert ledger.head.position == len([*ledger.read()]) == N_FILED

    assert owners(shared) == before
    with unprivileged(NOBODY):
        assert append(shared, 1) == N_FILED + 1


READER = """
import os, sys
from pathlib import Path
from ledger.store import Ledger
os.setuid(int(sys.argv[1]))
with Ledger.read_only(Path(sys.argv[2])) as ledger:
    for _ in sys.stdin:
        print(ledger.head.position, flush=True)
"""


@contextmanager
def another_user_reading(path: Path) -> Iterator[Callable[[], int]]:
    """Give what asks another user's process, which keeps a ledger open, for the last position."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(SOMEBODY_ELSE), path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked
        assert answered

        def last_position() -> int:
            asked.write(b"\n")
            asked.flush()
            return int(answered.readline())

        yield last_position


@needs_two_users
def test_who_reads_beside_the_owner_sees_what_comes_and_leaves_nothing(shared: Path) -> None:
    """Standings are looked at by the whole group while a run goes on."""
    with unprivileged(NOBODY), Ledger.open(shared) as writer:
        writer.append(STREAM, verdicts(1, after=N_FILED))
        with unprivileged(0), another_user_reading(shared) as last_position:
            positions = [last_position()]
            with unprivileged(NOBODY):
                writer.append(STREAM, verdicts(1, after=N_FILED + 1))
                positions.append(last_position())
                writer.close()
            positions.append(last_position())

    assert positions == [N_FILED + 1, N_FILED + 2, N_FILED + 2]
    assert {*owners(shared).values()} == {NOBODY}
    with unprivileged(NOBODY):
        assert append(shared, 1) == N_FILED + 3


def read(ledger: Ledger) -> object:
    """Read all events."""
    return [*ledger.read(until=N_FILED)]


def search(ledger: Ledger) -> object:
    """Look for the newest."""
    return ledger.newest_rows(until=N_FILED, limit=1)


def copy(ledger: Ledger) -> None:
    """Back it up beside itself."""
    back_up(ledger, ledger.path.with_name("copy.ledger"))


@needs_two_users
@pytest.mark.parametrize("use", [read, search, copy])
def test_who_reads_what_somebody_changed_is_told_to_read_again(
    shared: Path, use: Callable[[Ledger], object]
) -> None:
    """Nothing is damaged: half of what was read is of before, and half of after."""
    with unprivileged(SOMEBODY_ELSE), Ledger.read_only(shared) as reader:
        use(reader)
        shared.with_name("copy.ledger").unlink(missing_ok=True)
        with unprivileged(NOBODY):
            append(shared, 1)

        with pytest.raises(
            ChangedMeanwhile,
            match=r"another program wrote to .*run\.ledger meanwhile: run the same",
        ) as caught:
            use(reader)

    assert caught.value.path == shared
    assert not shared.with_name("copy.ledger").exists()
    with unprivileged(SOMEBODY_ELSE), Ledger.read_only(shared) as reader:
        assert reader.head.position == N_FILED + 1


@needs_two_users
@pytest.mark.parametrize("use", [read, search])
def test_what_cannot_be_read_of_a_changed_file_is_no_damage(
    shared: Path, use: Callable[[Ledger], object]
) -> None:
    """Pages of before and after do not fit together: an undamaged copy is not what is missing."""
    with unprivileged(SOMEBODY_ELSE), Ledger.read_only(shared) as reader:
        pages = shared.read_bytes()
        with unprivileged(NOBODY):
            shared.write_bytes(pages[:16_384] + bytes(len(pages)))

        with pytest.raises(ChangedMeanwhile):
            use(reader)


@needs_two_users
def test_who_began_to_write_meanwhile_is_noticed_at_once(shared: Path) -> None:
    """A reader that follows a ledger would see nothing of what comes now."""
    with unprivileged(SOMEBODY_ELSE), Ledger.read_only(shared) as reader:
        with unprivileged(NOBODY), Ledger.open(shared), pytest.raises(ChangedMeanwhile):
            read(reader)
        shared.unlink()

        with pytest.raises(ChangedMeanwhile):
            read(reader)


@needs_two_users
def test_a_reader_whose_rights_are_not_the_files_leaves_nothing(shared: Path) -> None:
    """An archive is not writable for its owner either, and what is left there would not be."""
    shared.chmod(0o444)

    with unprivileged(NOBODY), Ledger.read_only(shared) as ledger:
        assert ledger.head.position == N_FILED

    assert {*owners(shared)} == {"run.ledger", "run.ledger.lock"}


def test_while_a_reader_opens_a_ledger_no_writer_closes_it(filed: Path) -> None:
    """The last to close removes the log, which the reader would make again, as its own."""
    with beside(filed, ".lock").open("rb") as lock:
        with kept_open(filed), pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_where_nobody_wrote_there_is_no_lock_to_wait_for(path: Path) -> None:
    """A ledger that was sent has come alone."""
    with kept_open(path):
        assert not beside(path, ".lock").exists()
