"""Threads share a ledger: whose turn it is writes for all who wait, interrupted or not."""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier, Thread
from types import FrameType
from typing import Final

import pytest
from msgspec.structs import replace

from ledger import store
from ledger.auditing.audit import audit
from ledger.errors import CannotWrite, InvalidEvent, KeyConflict, StaleVersion
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.storage.group_commit import Append, CommitQueue
from ledger.storage.lock import FileLock
from ledger.store import Ledger, utc_now
from tests.support.builders.events import N_FILED, NOON, STREAM, key, placed, verdict, verdicts
from tests.support.faults.hostile import interrupted_after, interrupted_once
from tests.support.patience import PATIENCE_S, wait_until

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


N_THREADS = 8
N_EACH = 25

Answers = Sequence[Future[tuple[Receipt, ...]]]


@contextmanager
def all_waiting(ledger: Ledger, *batches: Sequence[Event]) -> Iterator[Answers]:
    """Append from as many threads, which wait for one more that waits for a lock.

    The block begins when the lock is free: one of them writes for all.
    """
    with (
        closing(FileLock(ledger.path.with_name(f"{ledger.path.name}.lock"))) as lock,
        ThreadPoolExecutor(len(batches) + 1) as pool,
    ):
        with lock.held():
            first = pool.submit(ledger.append, STREAM, [verdict(key("first"))])
            wait_until(lambda: ledger._turn.locked() and not ledger._queue._waiting)
            others = []
            for n, batch in enumerate(batches, start=1):
                others.append(pool.submit(ledger.append, STREAM, batch))
                wait_until(partial(has_waiting, ledger, n))
        first.result()
        yield others


def has_waiting(ledger: Ledger, n: int) -> bool:
    """Say whether so many appends wait for others."""
    return len(ledger._queue._waiting) == n


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


def test_those_who_wait_together_share_one_transaction(path: Path) -> None:
    """A flush takes as long for one event as for fifty: that is what a shared one saves."""
    looks = count()

    def now() -> datetime:
        next(looks)
        return NOON

    with (
        Ledger.open(path, now) as ledger,
        all_waiting(ledger, *[[event] for event in verdicts(5)]) as answers,
    ):
        positions = [answer.result()[0].recorded.position for answer in answers]

    assert positions == [2, 3, 4, 5, 6]
    assert next(looks) == 2, "one look at the clock per transaction"


def test_the_same_event_from_two_threads_is_new_for_one(path: Path) -> None:
    """Both learn the one place it has; counts of what was recorded stay right."""
    with (
        Ledger.open(path) as ledger,
        all_waiting(ledger, verdicts(1), verdicts(1)) as (one, other),
    ):
        first, second = one.result()[0], other.result()[0]

    assert (first.is_new, second.is_new) == (True, False)
    assert second.recorded == first.recorded


def test_a_refused_append_does_not_refuse_those_it_waits_with(path: Path) -> None:
    """One caller's mistake is no reason to lose what the others have paid for."""
    conflicting = [*verdicts(1, after=1), verdict(key("0"), "B")]

    with (
        Ledger.open(path) as ledger,
        all_waiting(ledger, verdicts(1), conflicting, verdicts(1, after=2)) as answers,
    ):
        refusals = [type(answer.exception()) for answer in answers]
        stored = tuple(ledger.read())

        assert refusals == [type(None), KeyConflict, type(None)]
        assert stored[1:] == placed(each for n in (0, 2) for each in answers[n].result())
        assert [each.position for each in stored] == [1, 2, 3]
        assert audit(ledger) == ()


def test_only_the_stale_one_of_several_is_refused(filed: Path) -> None:
    """Two threads decided on the same state: the first of them was right."""
    with Ledger.open(filed) as ledger, ThreadPoolExecutor(2) as pool:
        answers = [
            pool.submit(ledger.append, STREAM, verdicts(1, after=number), expected_version=N_FILED)
            for number in (N_FILED, N_FILED + 1)
        ]
        refusals = {type(answer.exception()) for answer in answers}

    assert refusals == {type(None), StaleVersion}


def test_an_invalid_event_is_refused_before_it_waits(path: Path) -> None:
    """Nobody who waits can be held up by an event that could never be recorded."""
    invalid = [replace(verdict(key("invalid")), reply=object())]

    with (
        Ledger.open(path) as ledger,
        closing(FileLock(path.with_name(f"{path.name}.lock"))) as lock,
        lock.held(),
        interrupted_after(PATIENCE_S),
        pytest.raises(InvalidEvent),
    ):
        ledger.append(STREAM, invalid)


def test_no_room_is_told_to_all_who_waited(path: Path) -> None:
    """They share a transaction, so nothing of it is recorded, and each is told so."""
    long = [replace(verdict(key("long")), reply="x" * 1_000_000)]

    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(1, after=9))
        (n_pages,) = ledger.connection.execute("PRAGMA page_count").fetchone()
        ledger.connection.execute(f"PRAGMA max_page_count = {n_pages}")
        with all_waiting(ledger, verdicts(1), long, verdicts(1, after=1)) as answers:
            refusals = [type(answer.exception()) for answer in answers]

        assert refusals == [CannotWrite] * 3
        assert ledger.head.position == 2
        assert audit(ledger) == ()


def test_an_interrupted_writer_loses_nobodys_append(path: Path) -> None:
    """Ctrl-C ends one wait; what the others asked for is written by the next of them."""
    looks = count(1)

    def now() -> datetime:
        if next(looks) == 2:
            raise KeyboardInterrupt
        return utc_now()

    with Ledger.open(path, now) as ledger:
        with all_waiting(ledger, *[[event] for event in verdicts(5)]) as answers:
            interrupted = [each for each in answers if each.exception() is not None]
            receipts = [
                receipt for each in answers if each not in interrupted for receipt in each.result()
            ]

        assert [type(each.exception()) for each in interrupted] == [KeyboardInterrupt]
        assert len(receipts) == 4
        assert tuple(ledger.read(after=1)) == placed(receipts)
        assert all(each.is_new for each in receipts)
        assert audit(ledger) == ()


def test_an_interrupted_wait_holds_up_nobody(path: Path) -> None:
    """Ctrl-C reaches the main thread while it waits for others; they still get their turn."""
    answers: SimpleQueue[tuple[Receipt, ...]] = SimpleQueue()

    def append(ledger: Ledger, event: Event) -> None:
        answers.put(ledger.append(STREAM, [event]))

    def start(ledger: Ledger, number: int) -> None:
        # A daemon: should it wait for ever, the test fails and does not.
        Thread(target=append, args=(ledger, verdict(key(str(number)))), daemon=True).start()

    ledger = Ledger.open(path)
    lock_file = path.with_name(f"{path.name}.lock")
    with closing(FileLock(lock_file)) as lock, lock.held():
        start(ledger, 1)
        wait_until(ledger._turn.locked)
        with pytest.raises(KeyboardInterrupt), interrupted_once(partial(has_waiting, ledger, 1)):
            ledger.append(STREAM, [verdict(key("interrupted"))])
        start(ledger, 2)
        wait_until(partial(has_waiting, ledger, 1))
    receipts = [*answers.get(timeout=PATIENCE_S), *answers.get(timeout=PATIENCE_S)]

    assert {each.recorded.event for each in receipts} == {verdict(key("1")), verdict(key("2"))}
    assert len(ledger.append(STREAM, verdicts(1))) == 1
    assert audit(ledger) == ()
    ledger.close()


def test_an_interrupted_writer_may_ask_again(path: Path) -> None:
    """The connection is left as it was, in no transaction."""
    looks = count(1)

    def now() -> datetime:
        if next(looks) == 1:
            raise KeyboardInterrupt
        return utc_now()

    with Ledger.open(path, now) as ledger:
        with pytest.raises(KeyboardInterrupt):
            ledger.append(STREAM, verdicts(2))
        receipts = ledger.append(STREAM, verdicts(1))

        assert [each.position for each in placed(receipts)] == [1]
        assert tuple(ledger.read()) == placed(receipts)


def test_threads_read_while_others_append(path: Path) -> None:
    """A progress line asks for the head while answers arrive."""
    with Ledger.open(path) as ledger, ThreadPoolExecutor(2) as pool:
        writing = pool.submit(
            lambda: [ledger.append(STREAM, [event]) for event in verdicts(N_EACH)]
        )
        looks = [len(tuple(ledger.read())) for _ in range(N_EACH)]
        writing.result()

    assert looks == sorted(looks)


def test_an_answer_is_not_read_before_it_is_there() -> None:
    """An append that nobody settled must never pass for one that recorded nothing."""
    with pytest.raises(RuntimeError, match="before it was answered"):
        _ = Append(STREAM, (), None).receipts
