"""Where a process is killed: at a named function, or at a step that it takes outside itself.

Counted inside the process and not timed from without, a kill comes at the same place however fast
the machine is. The code under test knows nothing of it: a profiler's hook counts.
"""

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from socket import socket
from types import FrameType
from typing import Any, Final, TypeAlias

import msgspec

_OUTSIDE: Final = (sqlite3.Connection, socket)
_Hook: TypeAlias = Callable[[FrameType, str, Any], None]


class Death(msgspec.Struct, frozen=True):
    """A kill at the n-th call of a function; or, without a name, at the n-th step outside.

    A step outside is taken before and after each statement of SQLite and each piece sent or
    received. A generator is called each time that it is asked for more.
    """

    n: int
    function: str | None = None  # its module and qualified name


def before(function: Callable[..., object], *, call: int = 1) -> Death:
    """Return the death of a process at a call of a function, before it does anything."""
    return Death(call, f"{function.__module__}.{function.__qualname__}")


def die(death: Death) -> None:
    """Let this process be killed there; threads that it starts count too."""
    steps = count(1)
    hook = _at_steps(steps, death.n) if death.function is None else _at_calls(steps, death)
    threading.setprofile(hook)
    sys.setprofile(hook)


def _at_steps(steps: Iterator[int], n: int) -> _Hook:
    def look(_frame: FrameType, event: str, called: Any) -> None:  # noqa: ANN401  # as profilers do
        is_of_c = event in {"c_call", "c_return"}
        if is_of_c and isinstance(getattr(called, "__self__", None), _OUTSIDE) and next(steps) == n:
            os.kill(os.getpid(), signal.SIGKILL)

    return look


def _at_calls(steps: Iterator[int], death: Death) -> _Hook:
    """Compare the last part of the name first: this is asked at each call of anything."""
    function = death.function or ""
    last = function.rpartition(".")[2]

    def look(frame: FrameType, event: str, _called: Any) -> None:  # noqa: ANN401  # as profilers do
        if event != "call" or frame.f_code.co_name != last:
            return
        module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
        if f"{module}.{name}" == function and next(steps) == death.n:
            os.kill(os.getpid(), signal.SIGKILL)

    return look
