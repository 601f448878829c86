"""Appends of asyncio tasks: those that wait for the disk at the same time share one flush.

Threads that wait need a wake-up each; tasks of one event loop are woken together.
"""

import asyncio
from collections.abc import Sequence
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
        self._flush: asyncio.Task[None] | None = None

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
        if self._flush is None or self._flush.done():
            self._flush = loop.create_task(self._flush_all())
        await mine.is_answered
        return mine.append.receipts

    async def _flush_all(self) -> None:
        """Settle whoever waits, until nobody does."""
        while self._waiting:
            taken, self._waiting = self._waiting, []
            appends = [waiter.append for waiter in taken]
            settled = asyncio.to_thread(self._ledger.settle, appends)
            (fault,) = await asyncio.gather(settled, return_exceptions=True)
            for waiter in taken:
                if waiter.is_answered.cancelled():
                    continue
                if isinstance(fault, BaseException):
                    waiter.is_answered.set_exception(fault)
                else:
                    waiter.is_answered.set_result(None)
