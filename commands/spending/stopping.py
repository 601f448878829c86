"""Stop at Ctrl-C without losing what is under way."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, current_thread, main_thread
from types import FrameType

from commands.ports import Tell


@contextmanager
def stopping_gently(tell: Tell) -> Iterator[Event]:
    """Yield an event that the first Ctrl-C sets; the second interrupts at once.

    Outside the main thread, and where Ctrl-C is ignored, nothing sets it.
    """
    stops = Event()
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or before is signal.SIG_IGN:
        yield stops
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stops.set()
        with suppress(RuntimeError):  # it came in the middle of another line
            tell("stopping: answers under way are still recorded; Ctrl-C again leaves them")

    signal.signal(signal.SIGINT, stop)
    try:
        yield stops
    finally:
        signal.signal(signal.SIGINT, before)
