"""What the clients of remote servers share.

`run_concurrently` runs requests on threads; the others decode bodies and shorten error messages.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, TypeVar

import msgspec

THREAD_NAME: Final = "request"
REJECTED: Final = frozenset({400, 413, 422})  # the request is invalid, and would be rejected again
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Stopped(Exception):
    """Raised by a request that had sent nothing when the run was stopped."""


def run_concurrently(
    requests: Sequence[Request],
    ask: Callable[[Request], Answer],
    *,
    n_at_a_time: int,
    stops: Event | None = None,
) -> Iterator[Answer]:
    """Run requests on threads, at most n_at_a_time; yield answers as they finish.

    After an error, answers to requests already sent are still yielded before the error is raised.
    Closing the iterator, or setting `stops`, starts no further requests; closing waits for none.
    An `ask` that retries should check `stops`.
    """
    asking = _RequestPool(requests, ask, stops or Event())
    n_threads = min(n_at_a_time, len(requests))
    for _ in range(n_threads):
        # a daemon: an ending process must not wait for answers that it would not record
        Thread(target=asking.work, name=THREAD_NAME, daemon=True).start()
    try:
        yield from asking.answers(n_threads)
    finally:
        asking.stops.set()


class _RequestPool(Generic[Request, Answer]):
    """The queue of requests to the threads, and the queue of answers back."""

    def __init__(
        self, requests: Sequence[Request], ask: Callable[[Request], Answer], stops: Event
    ) -> None:
        self._requests = deque(requests)
        self._ask = ask
        self._finished: SimpleQueue[Answer | Exception | None] = (
            SimpleQueue()
        )  # None: a thread is done
        self.stops = stops

    def work(self) -> None:
        """Send one request after another, until none is left or the run is stopped."""
        try:
            while (request := self._next()) is not None:
                self._finished.put(self._ask(request))
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001  # raised again in the reader's thread
            self.stops.set()
            self._finished.put(error)
        finally:
            self._finished.put(None)

    def _next(self) -> Request | None:
        """Return the next request; None if none is left or the run is stopped."""
        try:
            return None if self.stops.is_set() else self._requests.popleft()
        except IndexError:
            return None

    def answers(self, n_threads: int) -> Iterator[Answer]:
        """Yield answers until all threads are done, then raise the first error."""
        error: Exception | None = None
        while n_threads:
            match self._finished.get():
                case None:
                    n_threads -= 1
                case Exception() as failure:
                    error = error or failure
                case answer:
                    yield answer
        if error is not None:
            raise error


def first_line(error: Exception | Warning) -> str:
    """Return the first line of an error message; the rest stays in the traceback."""
    return str(error).strip().partition("\n")[0]


_SHOWN: Final = 30  # bytes of a body that is not JSON, enough to recognize a web page
_Value = TypeVar("_Value")


def decode_json(body: bytes, decoder: msgspec.json.Decoder[_Value]) -> _Value:
    """Decode a JSON body; a ValidationError says that it is JSON of another type.

    The decoder must be made when its module is imported. msgspec studies a type at its first use;
    if two request threads are first at the same time, it may crash the process (msgspec 0.22).
    """
    try:
        value = json.loads(body)
    except ValueError as error:
        raise msgspec.DecodeError(f"not JSON: {body[:_SHOWN]!r}") from error
    return decoder.decode(replace_surrogates(json.dumps(value, ensure_ascii=False)))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 cannot encode, with "?"."""
    return text.encode(errors="replace").decode()


def lines_in(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a streamed file; the last one may be empty, or cut off."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    yield rest
