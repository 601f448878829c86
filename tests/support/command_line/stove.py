"""The warm process itself: see warm.py. All imports are done once, before any fork."""

import gc
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from typing import Final, NoReturn, cast

import msgspec

import commands.cli
from commands.cli.app import main
from commands.judging import session
from tests.support.command_line.warm import MOST_QUERIES, Order
from tests.support.faults.death import die

IMPORTED: Final = (
    "commands.backends.anthropic.batches",
    "commands.backends.endpoint.responder",
    "commands.backends.huggingface.local",
    "commands.backends._reference_judge",
    "transformers.models.olmo2.modeling_olmo2",
    *(
        found.name
        for found in walk_packages(commands.cli.__path__, "commands.cli.")
        if not found.name.endswith("__main__")  # which is the command line itself
    ),
)


def batch_options(**options: float) -> None:
    """Let batches be handled with other options than a user's, who waits for minutes."""
    make = cast("Callable[..., object]", vars(session)["BatchOptions"])
    vars(session)["BatchOptions"] = partial(make, **options)


batch_options(longest_poll_s=0.02, settle_s=0.5)


def serve() -> None:
    """Run each order in a process of its own, and tell which; tell how those asked for ended."""
    for line in sys.stdin.buffer:
        match msgspec.json.decode(line, type=Order | int):
            case Order() as order:
                tell(forked(order))
            case pid if pid < 0:
                tell(os.waitid(os.P_PID, -pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
            case pid:
                tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def tell(number: int) -> None:
    """Answer a line with a line."""
    sys.stdout.write(f"{number:d}\n")
    sys.stdout.flush()


def forked(order: Order) -> int:
    """Begin a process that does this and no more; return its id."""
    pid = os.fork()
    if pid == 0:
        be(order)
    return pid


def be(order: Order) -> NoReturn:
    """Be the command line, and end."""
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    if order.terminal is not None:
        os.setsid()  # the next terminal that it opens is its own
        signal.signal(signal.SIGINT, signal.default_int_handler)
    stdin, err = order.terminal or os.devnull, order.terminal or order.err
    for stream, path in ((0, stdin), (1, order.out), (2, err)):
        os.dup2(os.open(path, os.O_RDONLY if stream == 0 else os.O_WRONLY), stream)
    if order.room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.room, order.room))
    if (most := os.environ.pop(MOST_QUERIES, None)) is not None:
        batch_options(most_queries=int(most))
    sys.argv = ["tourney", *order.words]
    if order.death is not None:
        die(order.death)
    code: int | str | None = 0
    try:
        main()
    except SystemExit as done:
        code = done.code
    except BaseException:  # noqa: BLE001  # as an interpreter ends: with its traceback
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


if __name__ == "__main__":
    gc.disable()  # what is imported stays
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # or each process would look for garbage in all of this
    gc.enable()
    serve()
