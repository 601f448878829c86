"""Let the first process of a distributed training do something, and tell the others its result.

Nothing is shared but the result: the others wait, without a limit, for what the first process
writes into the store that joined them. A call by the first process alone does not block.
"""

import pickle
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import torch.distributed as dist
from torch.distributed import distributed_c10d

from commands.errors import ReplicaFailed

Result = TypeVar("Result")
_PAUSE_S: Final = 0.05
_n_calls: Counter[str] = Counter()  # of each name, in this process


class _Failure(NamedTuple):
    message: str


def on_first_rank(name: str, work: Callable[[], Result]) -> Result:
    """Return the result of the first process's work; a process alone is the first.

    Args:
        name: What is done; the n-th call of a name on one process gets the result of the n-th on
            the first.
        work: Called in the first process only. Its result can be pickled.

    Raises:
        ReplicaFailed: It failed in the first process, which raises the error itself.
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return work()
    _n_calls[name] += 1
    key = f"tourney/{name}/{_n_calls[name]}"
    followed: Result = _lead(key, work) if dist.get_rank() == 0 else _follow(key)
    return followed


def _lead(key: str, work: Callable[[], Result]) -> Result:
    try:
        result = work()
    except BaseException as error:
        failed = f"process 0 failed: {type(error).__name__}: {error}"
        _tell(key, _Failure(failed))
        raise
    _tell(key, result)
    return result


def _store() -> Any:  # noqa: ANN401  # torch types it in its private part
    """Return the store that joined the processes."""
    return distributed_c10d._get_default_store()  # noqa: SLF001  # torch has no public way to it


def _tell(key: str, result: object) -> None:
    _store().set(key, pickle.dumps(result))


def _follow(key: str) -> Any:  # noqa: ANN401  # what the first process pickled
    store = _store()
    while not store.check([key]):  # a blocking wait would keep other threads from the store
        time.sleep(_PAUSE_S)
    found = pickle.loads(store.get(key))  # noqa: S301  # the first rank wrote it
    if store.add(f"{key}/read", 1) == dist.get_world_size() - 1:
        store.delete_key(key)
    if isinstance(found, _Failure):
        raise ReplicaFailed([found.message])
    return found
