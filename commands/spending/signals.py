"""Stop at Ctrl-C, or at a request to end, without losing what is under way."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Final

from commands.ports import Tell

# Ctrl-C; the end of a scheduler's time; a terminal that was closed
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stopping_gently(tell: Tell) -> Iterator[Event]:
    """Yield an event that the first Ctrl-C, SIGTERM or SIGHUP sets; the second ends at once.

    Outside the main thread nothing sets it, nor does a signal that is ignored.
    """
    stops = Event()
    if current_thread() is not main_thread():
        yield stops
        return
    before = {each: signal.getsignal(each) for each in _ENDINGS}
    heeded = {each: how for each, how in before.items() if how not in {signal.SIG_IGN, None}}

    def restore() -> None:
        for each, how in heeded.items():
            signal.signal(each, how)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        restore()
        stops.set()
        with suppress(RuntimeError):  # it came in the middle of another line
            tell("stopping: answers under way are still recorded; Ctrl-C again leaves them")

    for each in heeded:
        signal.signal(each, stop)
    try:
        yield stops
    finally:
        restore()
