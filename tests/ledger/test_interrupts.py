"""A process that goes on after Ctrl-C, as notebooks do, still has a ledger."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

import ledger.store
from ledger.audit import audit
from ledger.storage.group_commit import Append, CommitQueue
from ledger.storage.lock import FileLock
from ledger.store import Ledger
from tests.builders import STREAM
from tests.ledger.facts import placed, verdicts

LEDGER: Final = str(Path(ledger.store.__file__).parent)
FEWEST_PLACES: Final = 60  # in an append


class Interrupts:
    """Comes once, where Python lets one come: as a function begins, and behind a C function."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.has_come = False

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count the places, as `sys.setprofile` tells of them."""
        is_place = event in {"call", "c_return"} and not self.has_come
        if is_place and frame.f_code.co_filename.startswith(LEDGER):
            self._left -= 1
            self.has_come = self._left < 0
            if self.has_come:
                raise KeyboardInterrupt


@contextmanager
def interrupted(at: int) -> Iterator[Interrupts]:
    """Interrupt what is done at its so manieth place, and go on behind it."""
    interrupts, before = Interrupts(at), sys.getprofile()
    sys.setprofile(interrupts.profile)
    try:
        yield interrupts
    except KeyboardInterrupt:
        assert interrupts.has_come, "nobody else interrupts"
    finally:
        sys.setprofile(before)


def test_an_append_that_is_interrupted_anywhere_can_be_repeated(path: Path) -> None:
    """Place by place: nothing is doubled, nothing is stuck, and what was recorded is known."""
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        for n_places in count():
            theirs, mine = verdicts(2, after=2 * n_places)
            (first,) = placed(other.append(STREAM, [theirs]))

            with interrupted(n_places) as interrupts:
                ledger.append(STREAM, [mine])
            (repeated,) = placed(ledger.append(STREAM, [mine]))
            (known,) = placed(ledger.append(STREAM, [theirs]))

            assert (known.position, repeated.position) == (first.position, first.position + 1)
            if not interrupts.has_come:
                break

        assert n_places > FEWEST_PLACES
        assert ledger.head.position == 2 * (n_places + 1)
        assert audit(ledger) == ()


def answer_all(appends: Sequence[Append]) -> None:
    """Say that nothing was to be recorded."""
    for each in appends:
        each.answer = ()


def test_a_lock_that_is_interrupted_when_it_is_taken_is_free(tmp_path: Path) -> None:
    """Who was interrupted there never comes to give it back, and others would wait for ever."""
    place = tmp_path / "lock"
    for n_places in count():
        lock = FileLock(place)

        with interrupted(n_places) as interrupts:
            lock.__enter__()
        if not interrupts.has_come:
            break

        with FileLock(place).held():
            lock.close()

    assert n_places > 1


def test_a_thread_whose_leading_append_was_interrupted_leads_again() -> None:
    """It left the line without a leader; waiting for itself would be for ever."""
    line = CommitQueue(answer_all)
    line._leader = Append(STREAM, [], None)

    assert line.commit(Append(STREAM, [], None)) == ()


def test_nothing_is_appended_to_a_ledger_that_was_closed(path: Path) -> None:
    """A descriptor that was given back may be another file's by now."""
    opened = Ledger.open(path)
    opened.close()

    with pytest.raises(ValueError, match="was closed"):
        opened.append(STREAM, verdicts(1))
