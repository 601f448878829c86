"""Watching events arrive."""

from collections.abc import Callable
from pathlib import Path

import pytest

from commands.runs.events import follow
from ledger.errors import CannotRead
from ledger.store import Ledger
from tests.builders import STREAM, key, verdict
from tests.ledger.hostile import unprivileged


class Enough(Exception):
    """Nobody looks any longer."""


def appending(ledger: Ledger, *batches: int) -> Callable[[], None]:
    """Return a wait in which others append so many events each time; then it ends."""
    remaining = iter(batches)
    names = iter(range(10**9))

    def wait() -> None:
        n_events = next(remaining, None)
        if n_events is None:
            raise Enough
        ledger.append(STREAM, [verdict(key(str(next(names)))) for _ in range(n_events)])

    return wait


@pytest.mark.parametrize("batches", [(), (1,), (2, 0, 3), (1_500, 1)])
@pytest.mark.parametrize("after", [0, 1])
def test_every_event_is_seen_once_and_in_order(
    tmp_path: Path, batches: tuple[int, ...], after: int
) -> None:
    """However many arrive between two looks, none is shown twice or left out."""
    seen: list[int] = []

    with Ledger.open(tmp_path / "run.ledger") as ledger:
        ledger.append(STREAM, [verdict(key("first")), verdict(key("second"))])
        news = follow(ledger.path, after, appending(ledger, *batches))
        with pytest.raises(Enough):
            seen.extend(row.position for row in news)

    assert seen == list(range(after + 1, 3 + sum(batches)))


def test_who_may_not_write_beside_it_sees_what_is_appended(public_folder: Path) -> None:
    """A ledger that nobody writes is read as it lies; the run begins while one looks on."""
    shelf = public_folder / "shelf"
    path = shelf / "run.ledger"
    names = iter(["second", "third"])
    seen: list[int] = []

    def wait() -> None:
        name = next(names, None)
        if name is None:
            raise Enough
        append(name)

    def append(name: str) -> None:
        shelf.chmod(0o755)
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, [verdict(key(name))])
        shelf.chmod(0o555)

    with unprivileged():
        shelf.mkdir()
        append("first")

        with pytest.raises(Enough):
            seen.extend(row.position for row in follow(path, 0, wait))

    assert seen == [1, 2, 3]


def test_a_ledger_that_was_replaced_is_followed_no_further(tmp_path: Path) -> None:
    """Its events would be shown as if they continued those of the other."""
    path, other = tmp_path / "run.ledger", tmp_path / "other.ledger"
    for each, name in ((path, "first"), (other, "another")):
        with Ledger.open(each) as ledger:
            ledger.append(STREAM, [verdict(key(name)), verdict(key("second"))])

    def replace() -> None:
        other.replace(path)

    news = follow(path, 1, replace)

    assert next(news).position == 2
    with pytest.raises(CannotRead, match="it was replaced: position 2 is no longer the same"):
        next(news)
