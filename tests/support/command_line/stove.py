"""The warm process itself: see warm.py. All imports are done once, before any fork."""

import gc
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from select import select
from socket import AF_UNIX, socket
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import httpx2
import msgspec

import commands.cli
from commands.cli.app import main
from commands.report.page import templates
from commands.runs.workspace import open_workspace
from commands.settings.sections import EndpointSection
from commands.settings.starting import lay_out_demo
from commands.settings.version import package_versions
from commands.spending.price_table import price_table
from commands.viewer import following
from ledger.storage import lock
from projections.ratings import boundaries, gate
from tests.support.command_line.warm import (
    HEAVY,
    MANY_OBJECTS,
    NUMBER,
    Order,
    short_batches,
    stove_lock,
)
from tests.support.faults.death import die

IMPORTED: Final = (
    "commands.backends.anthropic.batches",
    "commands.backends.endpoint.askers",
    "commands.backends.reference_judge",
    "commands.importing.formats.parquet",
    "opentelemetry.propagate",  # by a client of models, where it is installed
    "sqlite_utils",  # with pandas, by whoever makes a ledger
    *(
        found.name
        for found in walk_packages(commands.cli.__path__, "commands.cli.")
        if not found.name.endswith("__main__")  # which is the command line itself
    ),
)
WITH_TORCH: Final = (
    "commands.backends.huggingface.local",
    "transformers.models.olmo2.modeling_olmo2",
)


vars(following)["_SHORTEST_S"] = 0.02  # between two looks at a ledger that is viewed
vars(lock)["PATIENCE_S"] = 0.2  # of whoever waits for another command, and says so then


def warm_up() -> None:
    """Do once what each process would do anew: complete models, read what is installed."""
    with TemporaryDirectory() as name:
        lay_out_demo(folder := Path(name, "demo"))
        open_workspace(folder / "tournament.toml", None, package_versions())
    EndpointSection.model_rebuild()
    httpx2.Client().close()  # which imports all that it sends by
    price_table()
    boundaries.levels(vars(gate)["_ALL_LOOKS"])  # which each gate would simulate


def listen(place: Path) -> None:
    """Run each order in a fork, and tell its id and how it ended, until the last has gone."""
    with socket(AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        if os.fork():
            os._exit(0)  # who began this waits until it listens
        running: dict[int, tuple[int, socket]] = {}
        while running or not has_ended(place, listener):
            for ready in select([listener.fileno(), *running], [], [])[0]:
                if ready == listener.fileno():
                    connection, _ = listener.accept()
                    pid = forked(connection)
                    running[os.pidfd_open(pid)] = pid, connection
                    tell(connection, pid)
                else:
                    pid, connection = running.pop(ready)
                    tell(connection, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                    connection.close()
                    os.close(ready)


def tell(connection: socket, number: int) -> None:
    """Send a number to whoever ordered, if they are still there."""
    with suppress(OSError):
        connection.sendall(number.to_bytes(NUMBER, signed=True))


def has_ended(place: Path, listener: socket) -> bool:
    """Stop listening where nobody is about to connect."""
    try:
        with stove_lock(place):
            is_idle = not select([listener], [], [], 0)[0]
            if is_idle:
                place.unlink(missing_ok=True)
            return is_idle
    except FileNotFoundError:  # the tests have ended, and their folder is gone
        return True


def forked(connection: socket) -> int:
    """Begin a process that does what is ordered, if anything is, and no more; return its id."""
    pid = os.fork()
    if pid == 0:
        with connection.makefile("rb") as lines:
            line = lines.readline()
        if line:
            be(msgspec.json.decode(line, type=Order))
        os._exit(0)
    return pid


def unread() -> int:
    """Open a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def be(order: Order) -> NoReturn:
    """Be the command line, and end."""
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    if order.terminal is not None:
        os.setsid()  # the next terminal that it opens is its own
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # whoever began the tests may ignore it
    stdin, err = order.terminal or os.devnull, order.terminal or order.err
    for stream, path in ((0, stdin), (1, order.out), (2, err)):
        opened = os.open(path, os.O_RDONLY if stream == 0 else os.O_WRONLY) if path else unread()
        os.dup2(opened, stream)
    if order.room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.room, order.room))
    sys.argv = ["tourney", *order.words]
    if order.death is not None:
        die(order.death)
    code: int | str | None = 0
    try:
        with short_batches():
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
    place = Path(sys.argv[1])
    for name in (*IMPORTED, *(WITH_TORCH if place.name == HEAVY else ())):
        import_module(name)
    for name in templates().list_templates(extensions=["html"]):
        templates().get_template(name)  # else each report compiles them
    warm_up()
    gc.freeze()  # or each process would look for garbage in all of this
    gc.set_threshold(MANY_OBJECTS)
    gc.enable()
    listen(place)
