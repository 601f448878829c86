"""Waiting for what must come, however slow the machine is: only what hangs is given up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 600.0
_AT_ONCE_S: Final = 5.0  # what 100 kB take by the square of their length is more


@contextmanager
def at_once() -> Iterator[None]:
    """Require a block to be quick by the processor's time of this thread, others' left out."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < _AT_ONCE_S


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again until something is so."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < give_up_at, "it never came to that"
        time.sleep(0.005)
