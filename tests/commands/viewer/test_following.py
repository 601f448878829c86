"""A ledger that grows is read on, and each head is computed once."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from commands.viewer.following import LedgerFollower
from ledger.chain import Head
from ledger.errors import TourneyError
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.fold import Projection
from tests.support.builders.events import STREAM, verdicts

POSITIONS: Projection[tuple[int, ...]] = Projection(
    (), lambda state, events: (*state, *positions(events))
)


def positions(events: Iterable[Recorded]) -> tuple[int, ...]:
    """Return the positions of events."""
    return tuple(each.position for each in events)


def write(path: Path, n: int, *, after: int = 0) -> None:
    """Append so many events."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(n, after=after))


class Seen:
    """Follows a ledger, and notes each time that a view is computed."""

    def __init__(self, path: Path) -> None:
        """Follow the ledger at a path."""
        self.states: list[tuple[int, ...]] = []
        self.refuses = False
        self.follower = LedgerFollower(path, POSITIONS, self.view_of)

    def view_of(self, state: tuple[int, ...], head: Head) -> str:
        """Compute a view."""
        if self.refuses:
            raise TourneyError("nobody can be shown")
        self.states.append(state)
        return f"at {head.position}"


def test_a_view_is_computed_once_for_each_head(tmp_path: Path) -> None:
    """A request never waits for it, and what was folded is not folded again."""
    write(tmp_path / "a.db", 2)
    seen = Seen(tmp_path / "a.db")

    first, again = seen.follower.refresh(), seen.follower.refresh()
    write(tmp_path / "a.db", 1, after=2)
    later = seen.follower.refresh()

    assert (first, again, later) == (True, False, True)
    assert seen.states == [(1, 2), (1, 2, 3)]
    assert (seen.follower.view, seen.follower.position) == ("at 3", 3)


def test_another_ledger_in_its_place_is_read_from_its_start(tmp_path: Path) -> None:
    """What was known is of another history."""
    write(tmp_path / "a.db", 2)
    write(tmp_path / "b.db", 3, after=10)
    seen = Seen(tmp_path / "a.db")
    seen.follower.refresh()

    (tmp_path / "b.db").replace(tmp_path / "a.db")
    seen.follower.refresh()

    assert seen.states == [(1, 2), (1, 2, 3)]


def test_a_fault_is_told_and_the_last_view_stays(tmp_path: Path) -> None:
    """A ledger that is gone for a moment takes nothing from the screen."""
    path = tmp_path / "a.db"
    write(path, 1)
    seen = Seen(path)
    seen.follower.refresh()

    path.rename(tmp_path / "away.db")
    gone = seen.follower.refresh()
    fault = seen.follower.fault
    (tmp_path / "away.db").rename(path)
    seen.follower.refresh()

    assert not gone
    assert fault
    assert "a.db" in fault
    assert seen.follower.view == "at 1"
    assert seen.follower.fault is None


def test_a_view_that_cannot_be_computed_is_a_fault_too(tmp_path: Path) -> None:
    """The next head may be one that can be shown."""
    write(tmp_path / "a.db", 1)
    seen = Seen(tmp_path / "a.db")
    seen.refuses = True

    seen.follower.refresh()

    assert seen.follower.view is None
    assert seen.follower.fault == "nobody can be shown"


def test_whoever_waits_is_told_of_each_new_head(tmp_path: Path) -> None:
    """The stream begins with where things stand, and ends with the follower."""
    write(tmp_path / "a.db", 1)
    seen = Seen(tmp_path / "a.db")
    stream = seen.follower.events()

    begun = [next(stream), next(stream)]
    seen.follower.refresh()
    told = next(stream)
    seen.follower.end()

    assert begun == [b"retry: 2000\n\n", b"data: 0\n\n"]
    assert told == b"data: 1\n\n"
    assert list(stream) in ([], [b": still here\n\n"])


@pytest.mark.filterwarnings("error")
def test_it_follows_on_a_thread_until_the_end(tmp_path: Path) -> None:
    """The program ends without waiting for the next look."""
    write(tmp_path / "a.db", 1)
    seen = Seen(tmp_path / "a.db")
    stream = seen.follower.events()
    next(stream)
    next(stream)

    thread = seen.follower.start()
    told = next(stream)
    seen.follower.end()
    thread.join()

    assert told == b"data: 1\n\n"
