"""The `tourney` command: lists all commands, calls one, and turns errors into exit codes.

Only the module of the called command is imported, so help answers at once, and reading a ledger
never waits for what generating needs.
"""

import atexit
import gc
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from itertools import chain, takewhile
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.shared.help_and_suggestions import PanelGroup
from commands.errors import WorkInFlight
from commands.settings.version import VERSION
from ledger.errors import TourneyError

INTERRUPTED: Final = 130  # as a shell says of a process that was ended by Ctrl-C
_KEPT: Final = (
    "interrupted: everything recorded so far is kept; run the same command again to continue"
)
_FOLDING: Final = frozenset(
    {"project", "battle", "report", "view", "replay", "verify"}
)  # commands that only read
_MUCH: Final = 100_000  # objects
_HELP: Final = ["--help", "-h"]
_DIGITS: Final = 4  # of a terminal's size


class Entry(NamedTuple):
    """A command, and the module that has it as a function."""

    module: str
    name: str
    called: str = ""  # the function, where its name is not the command's

    @property
    def function(self) -> str:
        """The function's name."""
        return self.called or self.name.replace("-", "_")


class Group(NamedTuple):
    """A group of commands, of which only the called one is imported."""

    name: str
    help: str
    entries: tuple[Entry, ...]


def _of(module: str, *names: str) -> tuple[Entry, ...]:
    """Return several commands of a module."""
    return tuple(Entry(module, name) for name in names)


_PROJECTIONS: Final = (
    Entry("project.elo", "elo"),
    Entry("project.bradley_terry", "bt"),
    *_of("project.outcomes", "winrates", "matches", "responses"),
    *_of("project.agreement", "agreement", "compare-judges"),
    *_of("project.reliability", "fragility", "bias", "calibration"),
    Entry("project.outcomes", "spend"),
    Entry("project.metrics", "metrics"),
)
_BATCHES: Final = (
    Entry("batch", "list", "list_batches"),
    *_of("batch", "wait", "cancel", "forget"),
)
_IMPORTS: Final = _of("imports", "responses", "battles", "elo-ratings", "hydra-weights")
_EXPORTS: Final = (
    *_of("exports", "events", "battles", "elo-ratings", "results"),
    *_of("exports", "hub", "every-eval-ever", "mlflow", "wandb"),
)
COMMANDS: Final[Mapping[str, Sequence[Entry | Group]]] = {
    "Run": (
        Entry("init", "init"),
        *_of("run", "demo", "run"),
        Group(
            "plan",
            "Show what remains to be done and what it costs (read-only).",
            _of("plan", "generate", "judge", "evaluate"),
        ),
        Group(
            "apply",
            "Do what remains to be done (may cost money).",
            _of("apply", "generate", "judge", "evaluate"),
        ),
        Entry("evaluate", "evaluate"),
        Entry("project.viewing", "annotate"),
    ),
    "Read": (
        Group("project", "Show results from the ledger, at no cost.", _PROJECTIONS),
        Entry("project.battle", "battle"),
        Entry("project.status", "status"),
        Entry("gate", "gate"),
        Entry("project.sql", "sql"),
        Entry("exports", "report"),
        Entry("project.viewing", "view"),
        Entry("audit", "log"),
    ),
    "Money": (Group("batch", "Manage the batches at a provider.", _BATCHES),),
    "Audit": (
        *_of("audit", "verify", "replay", "backup", "redact"),
        Entry("run", "doctor"),
    ),
    "Exchange": (
        Group("import", "Import data of other programs.", _IMPORTS),
        Group("export", "Write the ledger's contents to a file.", _EXPORTS),
        Entry("imports", "merge"),
    ),
}
"""The commands under the headings of their panels in help."""


def main() -> None:
    """Run the command line; the console script."""
    if isinstance(sys.stdout, TextIOWrapper):  # JSON is UTF-8, whatever the locale says
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    atexit.register(_drop_what_nobody_reads)
    _drop_impossible_sizes()
    before_help = takewhile(lambda word: word not in _HELP, _typed())  # what follows is not called
    words = [word for word in before_help if not word.startswith("-")]
    if not _FOLDING.isdisjoint(words[:1]):
        _tune_interpreter()
    try:
        command_line(words)(prog_name="tourney")
    except SystemExit as done:  # typer makes one of Ctrl-C, without a word
        if done.code == INTERRUPTED:
            _say(_KEPT)
        raise
    except KeyboardInterrupt:  # before typer runs: while the command is imported
        _say(_KEPT)
        sys.exit(INTERRUPTED)
    except TourneyError as error:
        if "--debug" in sys.argv:
            raise
        from projections.artifacts.escaping import escaped  # noqa: PLC0415  # help does not need it

        label = "in flight" if isinstance(error, WorkInFlight) else "error"
        _say(f"{label}: {escaped(str(error))}", fg="red")
        sys.exit(error.exit_code)


def _say(message: str, fg: str | None = None) -> None:
    """Print the last message; the exit code holds even if nobody can read it."""
    with suppress(OSError):
        typer.secho(message, fg=fg, err=True)


def _drop_impossible_sizes() -> None:
    """Drop a size of the terminal that is none, as 0: libraries take it as it comes, or fail."""
    for name in ("COLUMNS", "LINES"):
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdecimal() and 1 <= len(size.lstrip("0")) <= _DIGITS):
            os.environ.pop(name, None)


def _drop_what_nobody_reads() -> None:
    """Drop what is left of standard error if it cannot be written: Python would exit with 120."""
    try:
        if sys.stderr:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _typed() -> list[str]:
    """Return the words after `tourney`: of the call, or of the line that a shell completes."""
    lines = (os.environ.get(name, "") for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS"))
    if "_TOURNEY_COMPLETE" not in os.environ:
        return sys.argv[1:]
    return next((line.split()[1:] for line in lines if line), [])


def _tune_interpreter() -> None:
    """Relax garbage collection and BLAS threads for short commands; NumPy is not imported yet.

    What is read from a ledger is needed until the end: collecting garbage every 700 objects, and
    again at exit, takes a fifth of a short command. The matrices are small: more BLAS threads
    would only spin.
    """
    gc.set_threshold(_MUCH)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def command_line(words: Sequence[str] | None = None) -> typer.Typer:
    """Build the command line: of the command that the words call alone; None: of all."""
    app = typer.Typer(
        name="tourney",
        cls=PanelGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # a bug keeps its plain traceback, without local values
        rich_markup_mode=None,
        context_settings={"help_option_names": _HELP, "obj": [*_paths()]},
    )
    app.callback(invoke_without_command=True)(tourney)
    placed = [(heading, entry) for heading, entries in COMMANDS.items() for entry in entries]
    _add_commands(app, placed, words)
    return app


def _paths() -> Iterator[str]:
    """Yield every group and command as it is typed."""
    for entry in chain.from_iterable(COMMANDS.values()):
        yield f"tourney {entry.name}"
        for below in entry.entries if isinstance(entry, Group) else ():
            yield f"tourney {entry.name} {below.name}"


def _add_commands(
    app: typer.Typer,
    placed: Sequence[tuple[str | None, Entry | Group]],
    words: Sequence[str] | None,
) -> None:
    """Add the called command, which is imported, or all; if none is called, list them.

    Args:
        app: What they are added to.
        placed: Each with the heading of its panel.
        words: The first calls one; None: all are called.
    """
    called = [each for each in placed if words is None or each[1].name in words[:1]]
    for panel, entry in called:
        if isinstance(entry, Group):
            group = typer.Typer(no_args_is_help=True)
            _add_commands(group, [(None, each) for each in entry.entries], words and words[1:])
            app.add_typer(
                group, name=entry.name, help=entry.help, cls=PanelGroup, rich_help_panel=panel
            )
        else:
            act = getattr(_module(entry.module), entry.function)
            kind, epilog = _module("shared.selection").SelectingCommand, vars(act).get("epilog")
            app.command(entry.name, cls=kind, epilog=epilog, rich_help_panel=panel)(act)
    for panel, entry in () if called else placed:
        line = _line_of_help(entry)
        app.command(entry.name, help=line, rich_help_panel=panel)(_not_imported)


def _module(name: str) -> ModuleType:
    return import_module(f"commands.cli.{name}")


def _line_of_help(entry: Entry | Group) -> str:
    """Return a group's help, or how a command's begins: read as text, since imports take longer."""
    if isinstance(entry, Group):
        return entry.help
    source = Path(__file__).parent.joinpath(*entry.module.split(".")).with_suffix(".py")
    begin = rf'^def {entry.function}\(.*?^    """([^\n]*)'
    (line,) = re.findall(begin, source.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(line)


def _not_imported() -> None:
    """Stand for a command that is listed and not imported."""
    raise NotImplementedError


def tourney(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and exit.")
    ] = False,
    debug: Annotated[  # noqa: ARG001  # read in main, where the error arrives
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Compare language models with an LLM judge. Every step is recorded in one ledger.

    Example: tourney demo
    """
    if show_version:
        typer.echo(f"tourney {VERSION}")
        raise typer.Exit
