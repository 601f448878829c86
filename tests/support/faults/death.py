"""Where a process is killed: at a named function, or at a step that it takes outside itself.

Counted inside the process and not timed from without, a kill comes at the same place however fast
the machine is. The code under test knows nothing of it: a profiler's hook counts.
"""

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from itertools import count
from socket import socket
from types import FrameType
from typing import Any, Final

import msgspec

_OUTSIDE: Final = (sqlite3.Connection, socket)


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

    def look(frame: FrameType, event: str, called: Any) -> None:  # noqa: ANN401  # as profilers do
        if _is_there(frame, event, called, death.function) and next(steps) == death.n:
            os.kill(os.getpid(), signal.SIGKILL)

    hook: Callable[[FrameType, str, Any], None] = look
    threading.setprofile(hook)
    sys.setprofile(hook)


def _is_there(frame: FrameType, event: str, called: object, function: str | None) -> bool:
    if function is None:
        is_of_c = event in {"c_call", "c_return"}
        return is_of_c and isinstance(getattr(called, "__self__", None), _OUTSIDE)
    module, name = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    return event == "call" and f"{module}.{name}" == function
