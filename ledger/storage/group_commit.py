"""Group commit: of the threads that wait to append, one writes for all, with one flush."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.errors import LedgerError
from ledger.identity import StreamId
from ledger.recorded import Receipt
from ledger.storage.writer import Draft, EventWriter

_LOOKS_UP_S: Final = 1.0  # who was to call it may have been interrupted just then


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Append:
    """One call of `append`, until it is answered."""

    stream: StreamId
    drafts: Sequence[Draft]
    expected_version: int | None
    answer: tuple[Receipt, ...] | LedgerError | None = None
    call: threading.Lock = field(default_factory=_locked)  # released when answered, or to lead
    successor: "Append | None" = None  # whom this one calls: threads that wake at once jostle
    thread: int = field(default_factory=threading.get_ident)

    def write(self, writer: EventWriter) -> None:
        """Append these events, or keep the error; other appends go on."""
        try:
            self.answer = writer.append(self.stream, self.drafts, self.expected_version)
        except LedgerError as refused:
            self.answer = refused

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The result.

        Raises:
            LedgerError: The append was refused.
        """
        if isinstance(self.answer, LedgerError):
            raise self.answer
        if self.answer is None:
            raise RuntimeError("read before it was answered")
        return self.answer


class CommitQueue:
    """A queue of threads that append to one ledger.

    The leader writes for all that wait; threads that arrive meanwhile wait for the next leader. A
    thread may be interrupted anywhere: it leaves the queue, and another leads, or at the latest
    itself when it appends again.
    """

    def __init__(self, commit_all: Callable[[Sequence[Append]], None]) -> None:
        self._commit_all = commit_all
        self._waiting: deque[Append] = deque()
        self._leader: Append | None = None
        self._door = threading.Lock()

    def commit(self, mine: Append) -> tuple[Receipt, ...]:
        """Wait until an append is written, by this thread or another.

        Raises:
            LedgerError: It was refused.
        """
        try:
            with self._door:
                self._waiting.append(mine)
                if self._leader is None or self._leader.thread == mine.thread:
                    self._leader = mine  # a leader of this thread was interrupted, and left so
            while mine.answer is None and self._leader is not mine:
                mine.call.acquire(timeout=_LOOKS_UP_S)
            if mine.answer is None:
                self._lead(mine)
        finally:
            self._leave(mine)
        return mine.receipts

    def _lead(self, mine: Append) -> None:
        taken: list[Append] = []
        try:
            with self._door:
                taken += self._waiting
                self._waiting.clear()
            self._commit_all(taken)
        finally:
            others = [each for each in taken if each is not mine]
            with self._door:  # some are unanswered where settling was interrupted
                self._waiting.extendleft(each for each in reversed(others) if each.answer is None)
            mine.successor = None
            for each in reversed([each for each in others if each.answer is not None]):
                each.successor, mine.successor = mine.successor, each

    def _leave(self, mine: Append) -> None:
        """Leave the queue, so that nobody waits for this append."""
        if mine.successor is not None:
            mine.successor.call.release()
        with self._door:
            if mine in self._waiting:
                self._waiting.remove(mine)
            if self._leader is mine:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.call.release()
