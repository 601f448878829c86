"""Appends of asyncio tasks: those that wait for the disk at the same time share one flush.

Threads that wait need a wake-up each; tasks of one event loop are woken together.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ledger.events.event import Event
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger
from ledger.waiting import Append


class _Waiter(NamedTuple):
    """A task's append, and what it waits on."""

    append: Append
    is_answered: asyncio.Future[None]


class TaskAppender:
    """Appends to a ledger for the tasks of one event loop, which goes on meanwhile."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[_Waiter] = []
        self._is_settling = False

    async def append(
        self, stream: StreamId, events: Sequence[Event], *, expected_version: int | None = None
    ) -> tuple[Receipt, ...]:
        """Append as `Ledger.append` does; when this returns, the events are on the disk.

        A task that is cancelled while it waits may have appended all the same.

        Raises:
            LedgerError: As there.
        """
        loop = asyncio.get_running_loop()
        mine = _Waiter(self._ledger.prepare(stream, events, expected_version), loop.create_future())
        self._waiting.append(mine)
        if not self._is_settling:
            self._is_settling = True
            loop.call_soon(self._settle)  # with whoever else appends in this turn of the loop
        await mine.is_answered
        return mine.append.receipts

    def _settle(self) -> None:
        """Settle whoever waits, in a thread; no task does it, for the loop's end cancels all."""
        taken, self._waiting = self._waiting, []
        appends = [waiter.append for waiter in taken]
        loop = asyncio.get_running_loop()
        settled = loop.run_in_executor(None, self._ledger.settle, appends)
        settled.add_done_callback(partial(self._answer, taken))

    def _answer(self, taken: Sequence[_Waiter], settled: asyncio.Future[None]) -> None:
        """Wake whoever was settled, and settle those who came meanwhile."""
        fault = settled.exception()
        for waiter in taken:
            if waiter.is_answered.cancelled():
                continue
            if fault is None:
                waiter.is_answered.set_result(None)
            else:
                waiter.is_answered.set_exception(fault)
        # Those who gave up go along with others only: an ending loop lends no more threads.
        self._is_settling = not all(waiter.is_answered.cancelled() for waiter in self._waiting)
        if self._is_settling:
            self._settle()
