import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from threading import Timer

import pytest

from ledger.audit import audit
from ledger.errors import CannotWrite, KeyConflict, StaleVersion
from ledger.events.judging import VerdictReceived
from ledger.file_system import beside
from ledger.lock import FileLock
from ledger.recorded import Receipt
from ledger.store import Ledger
from ledger.tasks import TaskAppender
from tests.builders import STREAM, key, verdict
from tests.ledger.facts import placed


def named(name: str) -> VerdictReceived:
    """Return a verdict on a query of that name."""
    return verdict(key(name))


async def told(ledger: Ledger, *names: str) -> list[tuple[Receipt, ...] | BaseException]:
    """Append a verdict of each name, each from a task of its own."""
    appender = TaskAppender(ledger)
    tasks = (appender.append(STREAM, [named(name)]) for name in names)
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_each_task_gets_its_own_receipts(tmp_path: Path) -> None:
    """What it waited for is on the disk, wherever in the flush it was."""
    names = [f"q{n}" for n in range(64)]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        answers = asyncio.run(told(ledger, *names))

        receipts = list(chain.from_iterable(each for each in answers if isinstance(each, tuple)))
        assert placed(receipts) == tuple(ledger.read())
        assert [each.recorded.event for each in receipts] == [named(name) for name in names]
        assert audit(ledger) == ()


def test_tasks_that_wait_together_share_a_transaction(tmp_path: Path) -> None:
    """A flush for each would make sixty-four tasks as slow as one."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        asyncio.run(told(ledger, *(f"q{n}" for n in range(64))))

        assert len({recorded.recorded_us for recorded in ledger.read()}) <= 2


def test_tasks_that_come_during_a_flush_are_in_the_next(tmp_path: Path) -> None:
    """The event loop goes on while the disk is waited for."""

    async def one_after_another(ledger: Ledger) -> None:
        appender = TaskAppender(ledger)
        first = asyncio.create_task(appender.append(STREAM, [named("first")]))
        await asyncio.sleep(0)
        await asyncio.gather(appender.append(STREAM, [named("second")]), first)

    with Ledger.open(tmp_path / "ledger.db") as ledger:
        asyncio.run(one_after_another(ledger))

        assert [each.event for each in ledger.read()] == [named("first"), named("second")]


def test_a_refused_task_does_not_refuse_the_others(ledger: Ledger) -> None:
    """They share a flush, not their fate."""
    ledger.append(STREAM, [verdict(key("q"), "A")])

    async def at_once() -> Sequence[tuple[Receipt, ...] | BaseException]:
        appender = TaskAppender(ledger)
        return await asyncio.gather(
            appender.append(STREAM, [verdict(key("q"), "B")]),
            appender.append(STREAM, [named("other")]),
            appender.append(STREAM, [named("late")], expected_version=1),
            return_exceptions=True,
        )

    conflict, receipts, stale = asyncio.run(at_once())

    assert isinstance(conflict, KeyConflict)
    assert isinstance(receipts, tuple)
    assert isinstance(stale, StaleVersion)


def test_a_task_that_was_cancelled_holds_up_nobody(tmp_path: Path) -> None:
    """A judge that is given up leaves the others waiting for their own receipts."""

    async def cancelling(ledger: Ledger) -> tuple[Receipt, ...]:
        appender = TaskAppender(ledger)
        given_up = asyncio.create_task(appender.append(STREAM, [named("given up")]))
        waiting = asyncio.create_task(appender.append(STREAM, [named("waiting")]))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        return await waiting

    with Ledger.open(tmp_path / "ledger.db") as ledger:
        (receipt,) = asyncio.run(cancelling(ledger))

        assert receipt.recorded.event == named("waiting")


def test_a_last_note_is_recorded_when_all_tasks_are_cancelled(path: Path) -> None:
    """A judge notes what it spent on its way out, while asyncio ends whatever still runs."""

    async def noting(appender: TaskAppender) -> tuple[Receipt, ...]:
        try:
            await appender.append(STREAM, [named("first")])
        finally:
            noted = await appender.append(STREAM, [named("last note")])
        return noted

    async def ending(ledger: Ledger, lock: FileLock) -> set[asyncio.Task[tuple[Receipt, ...]]]:
        with lock.held():  # a slow disk
            task = asyncio.create_task(noting(TaskAppender(ledger)))
            await asyncio.sleep(0.1)
            for each in asyncio.all_tasks() - {asyncio.current_task()}:
                each.cancel()
            await asyncio.sleep(0.1)
        _, late = await asyncio.wait([task], timeout=5)
        return late

    with Ledger.open(path) as ledger, closing(FileLock(beside(path, ".lock"))) as lock:
        assert asyncio.run(ending(ledger, lock)) == set()

        assert [each.event for each in ledger.read()] == [named("first"), named("last note")]


def test_a_loop_that_ends_while_tasks_wait_ends_in_peace(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C is the user's right; a traceback of asyncio's own would look like a fault of ours."""
    with Ledger.open(path) as ledger, closing(FileLock(beside(path, ".lock"))) as lock:

        async def ending() -> None:
            appender, tasks = TaskAppender(ledger), []
            for name in ("on its way to the disk", "next in line"):
                tasks.append(asyncio.create_task(appender.append(STREAM, [named(name)])))
                await asyncio.sleep(0.1)
            Timer(0.2, held.close).start()

        with ExitStack() as held:
            held.enter_context(lock.held())
            asyncio.run(ending())

        assert [each.event for each in ledger.read()] == [named("on its way to the disk")]
    assert caplog.messages == []


def test_a_ledger_that_cannot_be_written_tells_every_task(tmp_path: Path) -> None:
    """None of them may take silence for a receipt."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.connection.execute("PRAGMA query_only = ON")

        answers = asyncio.run(told(ledger, "a", "b"))

        assert [type(each) for each in answers] == [CannotWrite, CannotWrite]


def test_a_mistake_nobody_foresaw_reaches_the_tasks(tmp_path: Path) -> None:
    """It is a bug, and tasks that wait for ever would hide it."""
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.close()

    answers = asyncio.run(told(ledger, "a", "b"))

    assert all(isinstance(each, Exception) for each in answers)
