"""Threads share a ledger: they take turns, and any of them may be interrupted."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Barrier
from types import FrameType
from typing import Final

import pytest

from ledger import store
from ledger.auditing.audit import audit
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.storage.lock import FileLock
from ledger.store import Ledger
from tests.support.builders.events import STREAM, key, placed, verdict, verdicts
from tests.support.faults.hostile import interrupted_once
from tests.support.patience import wait_until

LEDGER: Final = str(Path(store.__file__).parent)
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


@pytest.mark.no_cover
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


def test_a_lock_that_is_interrupted_when_it_is_taken_is_free(tmp_path: Path) -> None:
    """Who was interrupted there never comes to give it back, and others would wait for ever."""
    place = tmp_path / "lock"
    for n_places in count():
        lock = FileLock(place)

        with interrupted(n_places) as interrupts:
            lock.__enter__()
        if not interrupts.has_come:
            break

        with closing(FileLock(place)) as other, other:
            lock.close()

    assert n_places > 1


N_THREADS = 8
N_EACH = 25


def test_many_threads_get_their_own_receipts(path: Path) -> None:
    """Answers arrive together and are recorded together; none may be taken for another's."""
    barrier = Barrier(N_THREADS)

    def append_all(number: int) -> list[Receipt]:
        stream = StreamId(f"thread {number % 3}")
        barrier.wait()
        return [
            receipt
            for event in verdicts(N_EACH, after=number * N_EACH)
            for receipt in ledger.append(stream, [event])
        ]

    with Ledger.open(path) as ledger, ThreadPoolExecutor(N_THREADS) as pool:
        receipts = list(pool.map(append_all, range(N_THREADS)))

        stored = list(ledger.read())
        rows = {row.position: row for row in ledger.rows()}
        faults = audit(ledger)

    assert faults == ()
    assert [each.position for each in stored] == list(range(1, N_THREADS * N_EACH + 1))
    assert sorted(placed(each for mine in receipts for each in mine)) == stored
    for number, mine in enumerate(receipts):
        assert tuple(each.recorded.event for each in mine) == verdicts(
            N_EACH, after=number * N_EACH
        )
        assert all(each.is_new for each in mine)
        assert all(each.leaf == rows[each.recorded.position].leaf for each in mine)


def test_an_interrupted_wait_holds_up_nobody(path: Path) -> None:
    """Ctrl-C reaches the main thread while it waits for others; they still get their turn."""
    lock_file = path.with_name(f"{path.name}.lock")
    with Ledger.open(path) as ledger, ThreadPoolExecutor(2) as pool:
        with closing(FileLock(lock_file)) as lock, lock:
            first = pool.submit(ledger.append, STREAM, verdicts(1))
            wait_until(ledger._turn.locked)
            with pytest.raises(KeyboardInterrupt), interrupted_once(first.running):
                ledger.append(STREAM, [verdict(key("interrupted"))])
            second = pool.submit(ledger.append, STREAM, verdicts(1, after=1))
        receipts = [*first.result(), *second.result()]

        assert sorted(placed(receipts)) == [*ledger.read()]
        assert len(ledger.append(STREAM, verdicts(1))) == 1
        assert audit(ledger) == ()


def test_threads_read_while_others_append(path: Path) -> None:
    """A progress line asks for the head while answers arrive."""
    with Ledger.open(path) as ledger, ThreadPoolExecutor(2) as pool:
        writing = pool.submit(
            lambda: [ledger.append(STREAM, [event]) for event in verdicts(N_EACH)]
        )
        looks = [len(tuple(ledger.read())) for _ in range(N_EACH)]
        writing.result()

    assert looks == sorted(looks)
