"""Stop at Ctrl-C, or at a request to end, without losing what is under way."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Final, TypeAlias

from commands.ports import Tell

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None
_Handlers: TypeAlias = Mapping[signal.Signals, _Handler]

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
    heeded = _heeded()

    def restore() -> None:
        _restore(heeded)

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


@contextmanager
def interrupted_by_any_ending() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM and SIGHUP as at Ctrl-C, so that what was begun is undone.

    Outside the main thread nothing does, nor does a signal that is ignored.
    """
    heeded = _heeded() if current_thread() is main_thread() else {}
    for each in heeded:
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        _restore(heeded)


def _heeded() -> _Handlers:
    """Return what handles each signal that is not ignored."""
    before = {each: signal.getsignal(each) for each in _ENDINGS}
    return {each: how for each, how in before.items() if how not in {signal.SIG_IGN, None}}


def _restore(handlers: _Handlers) -> None:
    for each, how in handlers.items():
        signal.signal(each, how)
