"""Ask several things at a time, each in a thread's turn, and take the answers as they come."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, TypeVar

import msgspec

THREAD_NAME: Final = "request"
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Stopped(Exception):
    """Raised by an `Ask` that had sent nothing when the asking stopped."""


def run_concurrently(
    questions: Sequence[Request],
    ask: Callable[[Request], Answer],
    *,
    n_at_a_time: int,
    stops: Event | None = None,
) -> Iterator[Answer]:
    """Yield answers as they come.

    What was asked when an error stopped the rest is still answered, before that is raised. Once
    the iterator is closed nothing more is asked, and nothing is waited for.

    Args:
        questions: What is asked.
        ask: Asks one of them, in a thread.
        n_at_a_time: How many threads there are, at most.
        stops: Is set when nothing more is to be asked: for an `ask` that may send twice, or by a
            reader who has heard enough.

    Raises:
        Exception: Whatever `ask` raised first.
    """
    asking = _RequestPool(questions, ask, stops or Event())
    n_threads = min(n_at_a_time, len(questions))
    for _ in range(n_threads):
        # a daemon: a process that is told to end does not wait for what it would not record
        Thread(target=asking.work, name=THREAD_NAME, daemon=True).start()
    try:
        yield from asking.answers(n_threads)
    finally:
        asking.stops.set()


class _RequestPool(Generic[Request, Answer]):
    """Questions on their way to the threads, and answers on their way back."""

    def __init__(
        self, questions: Sequence[Request], ask: Callable[[Request], Answer], stops: Event
    ) -> None:
        self._questions = deque(questions)
        self._ask = ask
        self._came: SimpleQueue[Answer | Exception | None] = SimpleQueue()  # None: a thread is done
        self.stops = stops

    def work(self) -> None:
        """Ask one question after the other, until there is none or the asking stops."""
        try:
            while (question := self._next()) is not None:
                self._came.put(self._ask(question))
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001  # the reader raises it, in its own thread
            self.stops.set()
            self._came.put(error)
        finally:
            self._came.put(None)

    def _next(self) -> Request | None:
        """Return a question that is not yet asked, unless the asking stops."""
        try:
            return None if self.stops.is_set() else self._questions.popleft()
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


def first_line(error: Exception | Warning) -> str:
    """Return the first line of a library's message; the rest stays on the cause's traceback."""
    return str(error).strip().partition("\n")[0]


_SHOWN: Final = 30  # bytes of what is no JSON, enough to know a web page by
_Value = TypeVar("_Value")


def decode_json(body: bytes, kind: type[_Value]) -> _Value:
    """Return the value of a type that a body holds.

    Raises:
        msgspec.ValidationError: It is another value.
        msgspec.DecodeError: It is no JSON.
    """
    try:
        value = json.loads(body)
    except ValueError as error:
        raise msgspec.DecodeError(f"no JSON, but {body[:_SHOWN]!r}") from error
    return msgspec.json.decode(replace_surrogates(json.dumps(value, ensure_ascii=False)), type=kind)


def replace_surrogates(text: str) -> str:
    """Return a text that can be written: half a character, which JSON may hold, becomes "?"."""
    return text.encode(errors="replace").decode()
