"""Ask several queries at a time, each in a thread's turn, and take the answers as they come."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, TypeAlias

from commands.ports import Answer
from projections.judge_query import JudgeQuery

THREAD_NAME: Final = "judge-query"
Ask: TypeAlias = Callable[[JudgeQuery], Answer]


class Stopped(Exception):
    """Raised by an `Ask` that had sent nothing when the asking stopped."""


def abreast(
    queries: Sequence[JudgeQuery], ask: Ask, *, n_at_a_time: int, stops: Event | None = None
) -> Iterator[Answer]:
    """Yield answers as they come.

    What was asked when an error stopped the rest is still answered, before that is raised. Once
    the iterator is closed nothing more is asked, and nothing is waited for.

    Args:
        queries: What is asked.
        ask: Asks one of them, in a thread.
        n_at_a_time: How many threads there are, at most.
        stops: Is set when nothing more is to be asked, for an `ask` that may send twice.

    Raises:
        Exception: Whatever `ask` raised first.
    """
    asking = _Asking(queries, ask, stops or Event())
    n_threads = min(n_at_a_time, len(queries))
    for _ in range(n_threads):
        # a daemon: a process that is told to end does not wait for what it would not record
        Thread(target=asking.work, name=THREAD_NAME, daemon=True).start()
    try:
        yield from asking.answers(n_threads)
    finally:
        asking.stops.set()


class _Asking:
    """Queries on their way to the threads, and answers on their way back."""

    def __init__(self, queries: Sequence[JudgeQuery], ask: Ask, stops: Event) -> None:
        self._queries = deque(queries)
        self._ask = ask
        self._came: SimpleQueue[Answer | Exception | None] = SimpleQueue()  # None: a thread is done
        self.stops = stops

    def work(self) -> None:
        """Ask one query after the other, until there is none or the asking stops."""
        try:
            while (query := self._next()) is not None:
                self._came.put(self._ask(query))
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001  # the reader raises it, in its own thread
            self.stops.set()
            self._came.put(error)
        finally:
            self._came.put(None)

    def _next(self) -> JudgeQuery | None:
        """Return a query that is not yet asked, unless the asking stops."""
        try:
            return None if self.stops.is_set() else self._queries.popleft()
        except IndexError:
            return None

    def answers(self, n_threads: int) -> Iterator[Answer]:
        """Yield what came until all threads are done, then raise what stopped them."""
        error: Exception | None = None
        while n_threads:
            match self._came.get():
                case None:
                    n_threads -= 1
                case Exception() as failure:
                    error = error or failure
                case answer:
                    yield answer
        if error is not None:
            raise error
