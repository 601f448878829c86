"""Run in a child process what changes a process for good, as wandb does with `sys.exit`."""

from collections.abc import Callable
from multiprocessing import get_context


def in_child(act: Callable[[], None]) -> None:
    """Run a function in a child of this process, and require that it raises nothing."""
    child = get_context("fork").Process(target=act)
    child.start()
    child.join()
    assert child.exitcode == 0
