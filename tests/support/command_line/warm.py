"""Commands run by a process with the imports done, which forks for each: none starts cold.

Most commands run where they are called, unless they are begun and not waited for.

There are two: one has torch, whose memory makes each fork three times as slow. Each serves all
workers of a run of the tests, on a socket of theirs. An order goes to it as a line of JSON on a
connection of its own; on this, two numbers come back: the process's id, and its exit code.
"""

import atexit
import fcntl
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from select import select
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final, NamedTuple
from unittest.mock import patch

import msgspec

from commands.cli.app import main
from commands.cli.shared.ledger import tournament_section
from commands.cli.shared.output import stderr
from tests.support.faults.death import Death

MANY_OBJECTS: Final = 20_000  # looking for garbage every 700 takes a tenth of the time
STOVE: Final = "STOVE"
"""The variable that names the folder where the processes listen."""
NUMBER: Final = 8  # bytes of a number that comes back
HEAVY: Final = "with-torch"
LIGHT: Final = "without-torch"
_READ_WEIGHTS: Final = {"apply", "demo", "doctor", "evaluate", "hydra-weights", "run"}
_HERE: Final = {
    *("apply", "backup", "batch", "battle", "doctor", "export", "gate", "import", "init", "log"),
    *("merge", "plan", "project", "redact", "replay", "report", "run", "sql", "status"),
    "verify",
}
_NOT_HERE: Final = {
    *("--rescore", "evaluate", "results"),  # which import what their user wrote
    *("hydra-weights", "mlflow", "wandb"),  # whose packages are large, or stay about
}
_ASKING: Final = ("commands.entrants.session", "commands.judging.plan", "commands.judging.session")
MOST_QUERIES: Final = "MOST_QUERIES"
"""The variable by which a test has small batches; the constant's name, too."""


class Order(msgspec.Struct, frozen=True):
    """A command to be run, what it reads and writes, and what ends it.

    It may write so many bytes to a file (`room`), and is killed where its death says so. Where it
    tells of errors (`err`) is "" if nobody reads it.
    """

    words: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    terminal: str | None
    out: str
    err: str
    room: int | None
    death: Death | None


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Running:
    """A command that goes on until it ends or is killed."""

    def __init__(self, connection: socket.socket, said: "TemporaryDirectory[str]") -> None:
        self._connection = connection
        self._pid = _number_from(connection)
        self._said = said

    @property
    def out(self) -> str:
        """What it has said on standard output so far."""
        return self._read("out")

    @property
    def err(self) -> str:
        """What it has said on standard error so far."""
        return self._read("err")

    @property
    def has_ended(self) -> bool:
        """Whether it has come to its end."""
        return bool(select([self._connection], [], [], 0)[0])

    def until(self, is_so: Callable[[], bool]) -> None:
        """Look again and again until something is so, which must come before its end."""
        while not is_so():
            assert not self.has_ended or is_so(), f"it ended before: {self.err}"
            time.sleep(0.02)

    def kill(self) -> Ended:
        """Let it end as it stands, unless it has ended."""
        return self._signalled(signal.SIGKILL)

    def interrupt(self) -> Ended:
        """Press Ctrl-C, and let it come to its end."""
        return self._signalled(signal.SIGINT)

    def _signalled(self, by: signal.Signals) -> Ended:
        if not self.has_ended:  # else its id may be another's
            os.kill(self._pid, by)
        return self.wait()

    def wait(self) -> Ended:
        """Let it come to its end."""
        with self._said, self._connection:
            return Ended(_number_from(self._connection), self._read("out"), self._read("err"))

    def _read(self, stream: str) -> str:
        return Path(self._said.name, stream).read_text(encoding="utf-8")


def run_warm(
    folder: Path, words: tuple[str, ...], environment: Mapping[str, str], *, room: int | None = None
) -> Ended:
    """Run the command line in a folder to its end, without a terminal.

    It runs in this process if it may: that takes half the time, or a fourth where it only reads.
    """
    is_for_here = words and words[0] in _HERE and _NOT_HERE.isdisjoint(words)
    if is_for_here and room is None and not _reads_weights(folder, words):
        return _run_here(folder, words, environment)
    return begin(folder, words, environment, room=room).wait()


def _run_here(folder: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> Ended:
    for kept in (tournament_section, stderr):
        kept.cache_clear()  # by an earlier command, in another folder
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        patch.dict(os.environ, environment, clear=True),
        short_batches(),
        patch.object(sys, "argv", ["tourney", *words]),
        patch.object(sys, "stdin", StringIO()),
        patch.object(sys, "excepthook", sys.excepthook),  # which typer replaces
        patch.object(gc, "set_threshold"),  # for a process of its own: that of the tests goes on
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(folder),
    ):
        try:
            main()
            code: object = 0
        except SystemExit as done:
            code = done.code
    said = (each.buffer.getvalue().decode() for each in (out, err))
    return Ended(code if isinstance(code, int) else int(code is not None), *said)


def begin(
    folder: Path,
    words: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    terminal: str | None = None,
    room: int | None = None,
    death: Death | None = None,
    told: str | None = None,
) -> Running:
    """Begin a command in a folder, and do not wait for it.

    Args:
        folder: Where.
        words: The command and its options.
        environment: What it finds there.
        terminal: Where it asks and tells: its standard input and error, and Ctrl-C reaches it.
        room: How many bytes it may write to a file.
        death: Where it is killed.
        told: The file in which its standard error is lost; "": a pipe that nobody reads.
    """
    said = TemporaryDirectory(prefix="said-")
    out, err = Path(said.name, "out"), Path(said.name, "err")
    out.touch()
    err.touch()
    told = str(err) if told is None else told
    order = Order(words, str(folder), dict(environment), terminal, str(out), told, room, death)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(_stove(HEAVY if _reads_weights(folder, words) else LIGHT)))
    connection.sendall(msgspec.json.encode(order) + b"\n")
    return Running(connection, said)


@contextmanager
def short_batches() -> Iterator[None]:
    """Let batches be handled with other options than a user's, who waits for minutes."""
    options: dict[str, float] = {"longest_poll_s": 0.02, "settle_s": 0.1}
    if (most := os.environ.get(MOST_QUERIES)) is not None:
        options["most_queries"] = int(most)
    with ExitStack() as stack:
        for asking in map(import_module, _ASKING):
            make = partial(vars(asking)["BatchOptions"], **options)
            stack.enter_context(patch.object(asking, "BatchOptions", make))
        yield


def share_stove() -> None:
    """Let all processes that begin here order from one."""
    if STOVE not in os.environ:
        folder = mkdtemp(prefix="stove-")
        atexit.register(rmtree, folder, ignore_errors=True)
        os.environ[STOVE] = folder


def _reads_weights(folder: Path, words: tuple[str, ...]) -> bool:
    """Guess whether a command imports torch; a wrong guess costs seconds, and no more."""
    settings = b"".join(file.read_bytes() for file in folder.glob("*.toml"))
    if words[:2] == ("apply", "judge"):
        return b'"hf"' in settings  # a judge's provider
    is_told = words[:1] == ("evaluate",) or "--weights" in words
    names_weights = is_told or any(each in settings for each in (b"weights", b"lm-eval"))
    return names_weights and not _READ_WEIGHTS.isdisjoint(words)


def _number_from(connection: socket.socket) -> int:
    return int.from_bytes(connection.recv(NUMBER, socket.MSG_WAITALL), signed=True)


@cache
def _stove(kind: str) -> Path:
    """Return where a process listens; whoever finds none begins it, and it ends with the last."""
    share_stove()
    place = Path(os.environ[STOVE], kind)
    present = socket.socket(socket.AF_UNIX)
    with stove_lock(place):
        if not place.exists():
            subprocess.run(
                [sys.executable, "-m", "tests.support.command_line.stove", str(place)],
                cwd=Path(__file__).parents[3],
                check=True,
            )
        present.connect(str(place))  # without an order, until this worker ends
    _number_from(present)
    atexit.register(present.close)
    return place


@contextmanager
def stove_lock(place: Path) -> Iterator[None]:
    """Keep the process from ending while somebody connects, and others from beginning it."""
    with place.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
