"""Let the first process of a distributed training do something, and tell the others its result.

The first process keeps a log of its calls in the store that joined them. Another process reads on
in it until it finds the call that equals its own, and waits if that is not there yet. So the first
may make calls alone: the others pass over them.
"""

import pickle
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import torch.distributed as dist
from torch.distributed import distributed_c10d

from commands.errors import ReplicaFailed

Result = TypeVar("Result")
_PAUSE_S: Final = 0.05
_PATIENCE: Final = 1200  # pauses before a process says that it waits: a minute
_n_calls: Counter[str] = Counter()  # of each job, that this process made or read


class Call(NamedTuple):
    """A call that several processes make, as each of them sees it."""

    job: str
    what: str  # the call with its arguments
    where: str = ""  # in the training: the same in all processes, and another after each step


def on_first_rank(call: Call, work: Callable[[], Result]) -> Result:
    """Return the result of the first process's work; a process alone is the first.

    Args:
        call: What is done; a process gets the result of the first process's next equal call.
        work: Called in the first process only. Its result can be pickled.

    Raises:
        ReplicaFailed: It failed in the first process, which raises the error itself.
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return work()
    followed: Result = _lead(call, work) if dist.get_rank() == 0 else _follow(call)
    return followed


def _lead(call: Call, work: Callable[[], Result]) -> Result:
    key = _next_key(call.job)
    _store().set(_begun(key), b"")
    try:
        result = work()
    except BaseException as error:
        failed = f"process 0 failed: {type(error).__name__}: {error}"
        _store().set(key, pickle.dumps((call, None, failed)))
        raise
    _store().set(key, pickle.dumps((call, result, None)))
    return result


def _store() -> Any:  # noqa: ANN401  # torch types it in its private part
    """Return the store that joined the processes."""
    return distributed_c10d._get_default_store()  # noqa: SLF001  # torch has no public way to it


def _next_key(job: str) -> str:
    _n_calls[job] += 1
    return f"tourney/{job}/{_n_calls[job]}"


def _begun(key: str) -> str:
    return f"{key}/begun"


def _follow(call: Call) -> Any:  # noqa: ANN401  # what the first process pickled
    last = failed = None
    while last != call:
        last, found, failed = _read(_next_key(call.job), call, last)
    if failed is not None:
        raise ReplicaFailed([failed])
    return found


def _read(key: str, call: Call, last: Call | None) -> tuple[Call, object, str | None]:
    """Return a call of the first process, its result, or why it failed; wait without a limit."""
    store, n_pauses = _store(), 0
    while not store.check([key]):  # a blocking wait would keep other threads from the store
        time.sleep(_PAUSE_S)
        n_pauses += 1
        if n_pauses == _PATIENCE and not store.check([_begun(key)]):
            warnings.warn(_waiting(call, last), stacklevel=2)
    found: tuple[Call, object, str | None] = pickle.loads(store.get(key))  # noqa: S301  # the first rank wrote it
    if store.add(f"{key}/read", 1) == dist.get_world_size() - 1:
        store.delete_key(key)
        store.delete_key(_begun(key))
    return found


def _waiting(call: Call, last: Call | None) -> str:
    """Say what a process waits for, and what the first did instead, if anything."""
    instead = f"; it called {last.what} ({last.where}) instead" if last else ""
    return (
        f"process {dist.get_rank()} waits for process 0 to call {call.what} ({call.where})"
        f"{instead}; make each call in all processes in the same order, or only in the first one"
    )
