"""The `tourney` command: puts the commands together and turns errors into words and exit codes."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from commands.cli import apply, audit, plan, project, run
from commands.cli.streams import complain
from ledger.errors import TourneyError

app = typer.Typer(
    name="tourney",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug keeps its plain traceback, without local values
    help="Compare language models with a judge: resume without paying twice, audit, re-rate.",
)
app.command()(run.demo)
app.command()(run.run)
app.add_typer(plan.app, name="plan")
app.add_typer(apply.app, name="apply")
app.add_typer(project.app, name="project")
app.command()(audit.replay)
app.command()(audit.verify)
app.command()(audit.log)
app.command()(audit.show)


def main() -> None:
    """Run the command line; the console script."""
    try:
        app()
    except TourneyError as error:
        if "--debug" in sys.argv:
            raise
        complain(str(error))
        sys.exit(error.exit_code)


@app.callback()
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
        typer.echo(f"tourney {version('tourney')}")
        raise typer.Exit
