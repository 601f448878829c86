"""The `tourney` command: finds the command that was called, and turns errors into exit codes.

Only the module of that command is imported: help answers at once, and reading a ledger never
waits for what generating needs.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.tables.render import shown
from commands.errors import WorkInFlight
from commands.settings.version import VERSION
from ledger.errors import TourneyError

INTERRUPTED: Final = 130  # as a shell says of a process that was ended by Ctrl-C
_FOLDING: Final = frozenset({"project", "replay", "verify"})  # commands: they read, and end
_MUCH: Final = 100_000  # objects


class Entry(NamedTuple):
    """Where a command is, and its one line of help."""

    module: str
    name: str
    help: str
    is_group: bool = False


class Group(NamedTuple):
    """Commands of which, too, only the one that was called is imported."""

    name: str
    help: str
    entries: tuple[Entry, ...]


_PROJECTIONS: Final = (
    Entry(
        "project.bradley_terry",
        "bt",
        "Rate by Bradley-Terry, as recorded settings say but for options.",
    ),
    Entry("project.outcomes", "imported", "List the ratings of others that were imported."),
    Entry(
        "project.reliability", "temperature", "Calibrate a judge's marks against people's votes."
    ),
    Entry("project.metrics", "metrics", "Show what evaluations came to."),
    Entry("project.outcomes", "responses", "List every response."),
    Entry("project.outcomes", "matches", "List every pairing and what became of it."),
    Entry("project.outcomes", "winrates", "Count wins, losses, ties and gaps by pair."),
    Entry("project.outcomes", "progress", "Show what is there and what is owed."),
    Entry("project.reliability", "agreement", "Show each judge's habits and how judges agree."),
    Entry("project.reliability", "calibration", "Compare p_correct with being right."),
    Entry("project.outcomes", "spend", "Show what was paid, to whom, for what and when."),
    Entry("project.elo", "elo", "Rate by Elo, by the recorded settings but for options."),
)
COMMANDS: Final = (
    Entry("run", "demo", "Run a whole tournament on tiny shipped weights, offline."),
    Entry("run", "run", "Register, generate, judge, rate, write artifacts."),
    Entry("plan", "plan", "Say what is owed: free, and nothing is written.", is_group=True),
    Entry("apply", "apply", "Do what is owed, and record it.", is_group=True),
    Entry("batch", "batch", "Money in flight: list, wait, adopt, cancel, forget.", is_group=True),
    Group("project", "Read the ledger: free, nothing is appended.", _PROJECTIONS),
    Entry("status", "prices", "Print what judges cost, from which table of what date."),
    Entry("audit", "replay", "Fold again from the first event, and compare byte for byte."),
    Entry("audit", "verify", "Check every byte, event and published run."),
    Entry("audit", "log", "List events, the newest last."),
    Entry("audit", "show", "Show the events that an ID means, whole, as JSON."),
    Entry("status", "status", "Say what is on record, of every tournament."),
    Entry("status", "doctor", "Look at what a run needs on this machine."),
    Entry("audit", "checkpoint", "Print what names the ledger's history, to be kept elsewhere."),
    Entry("audit", "backup", "Copy the ledger, be it written to or not."),
    Entry("exports", "export", "Write the ledger in another form.", is_group=True),
    Entry("imports", "import", "Read what another program or ledger wrote.", is_group=True),
    Entry("imports", "merge", "Take in the events of another ledger; twice is once."),
)


def main() -> None:
    """Run the command line; the console script."""
    if isinstance(sys.stdout, TextIOWrapper):  # JSON is UTF-8, whatever the locale says
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    completing = "_TOURNEY_COMPLETE" in os.environ
    if not _FOLDING.isdisjoint(words[:1]):
        _waste_no_time()
    try:
        command_line(None if completing else words)()
    except SystemExit as done:  # typer makes one of Ctrl-C, without a word
        if done.code == INTERRUPTED:
            typer.secho("interrupted: what was recorded is kept", err=True)
        raise
    except TourneyError as error:
        if "--debug" in sys.argv:
            raise
        label = "in flight" if isinstance(error, WorkInFlight) else "error"
        typer.secho(f"{label}: {shown(str(error))}", fg="red", err=True)
        sys.exit(error.exit_code)


def _waste_no_time() -> None:
    """Put aside what only takes time where a ledger is folded; NumPy is not imported yet.

    What is made of a ledger is needed until the end: to look for garbage in it every 700 objects,
    and again on leaving, is a fifth of a short command. The matrices are small: further threads of
    BLAS would wait, and they wait by turning in a loop.
    """
    gc.set_threshold(_MUCH)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def command_line(words: Sequence[str] | None = None) -> typer.Typer:
    """Put the command line together, importing only what its words call; None means all."""
    app = typer.Typer(
        name="tourney",
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # a bug keeps its plain traceback, without local values
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(tourney)
    _add_all(app, COMMANDS, words)
    return app


def _add_all(
    app: typer.Typer, entries: Sequence[Entry | Group], words: Sequence[str] | None
) -> None:
    for entry in entries:
        if words is None or entry.name in words[:1]:
            _add(app, entry, words and words[1:])
        else:
            app.command(entry.name, help=entry.help)(_not_imported)


def _add(app: typer.Typer, entry: Entry | Group, words: Sequence[str] | None) -> None:
    if isinstance(entry, Group):
        group = typer.Typer(no_args_is_help=True)
        _add_all(group, entry.entries, words)
        app.add_typer(group, name=entry.name, help=entry.help)
        return
    module = import_module(f"commands.cli.{entry.module}")
    if entry.is_group:
        app.add_typer(module.app, name=entry.name, help=entry.help)
    else:
        app.command(entry.name)(getattr(module, entry.name))


def _not_imported() -> None:
    """Stand in the list of commands."""
    raise NotImplementedError


def tourney(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.")
    ] = False,
    debug: Annotated[  # noqa: ARG001  # read in main, where the error arrives
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Compare language models with a judge: resume without paying twice, audit, re-rate."""
    if show_version:
        typer.echo(f"tourney {VERSION}")
        raise typer.Exit
