"""`tourney view` and `annotate`: pages in the browser, on this machine alone."""

from typing import Annotated, TypeAlias

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.output import say, write_lines
from commands.cli.shared.reading import set_name
from commands.cli.shared.selection import OF_LEDGER, Selected, selecting
from commands.cli.shared.workspace import ledger_to_change
from commands.errors import ConfigurationError, counted
from commands.importing.votes import open_ballot_box
from commands.reading.resolve import on_dimension
from commands.viewer.annotator import annotate as collect_votes
from commands.viewer.viewer import view as show_pages
from ledger.store import Ledger

Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="The port to listen on. Default: any free one.")
]


@selecting(*OF_LEDGER, "tournament")
def view(ctx: Selected, port: Port = 0) -> None:
    """Show a tournament in the browser, also during a run.

    Prints a local address with a secret token. The ledger is only read. Stop it with Ctrl-C.

    Example: tourney view
    """
    with Ledger.read_only(ctx.selection.path) as opened:
        stream = ctx.selection.stream_in(opened)
    show_pages(ctx.selection.path, stream, port, _print_address)


@selecting(*OF_LEDGER, "tournament")
def annotate(
    ctx: Selected,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="Label of the votes, such as your name.")
    ],
    name: Annotated[str, options.of_set("Name of the set that the votes join.")] = "votes",
    disagreement: Annotated[
        bool,
        typer.Option(
            "--disagreement",
            help="Draw only pairs on which the orders or judges disagree. Default: all pairs.",
        ),
    ] = False,
    dimension: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.dimensions,
            help="The dimension to vote on, if the tournament has several.",
        ),
    ] = None,
    limit: options.Limit = None,
    port: Port = 0,
) -> None:
    """Vote on anonymous pairs of responses in the browser.

    Each vote is recorded at once, as a battle of an imported set. To continue later, run the same
    command again.

    Example: tourney annotate --annotator ann --limit 60
    """
    with ledger_to_change(ctx.selection.path) as opened:
        state = ctx.selection.state_in(opened)
        dimensions = [rubric.dimension for rubric in on_dimension(state, dimension).dimensions]
        if len(dimensions) != 1:
            raise ConfigurationError([f"choose one with --dimension: {', '.join(dimensions)}"])
        box = open_ballot_box(
            opened,
            state,
            set_name(name),
            annotator,
            dimension=dimensions[0],
            design="disagreement" if disagreement else "random",
            limit=limit,
        )
        collect_votes(box, port, _print_address)
        say(f"{counted(box.n_done, 'vote')} of {len(box.ballots)} in set {box.name!r}")


def _print_address(address: str) -> None:
    write_lines([f"{address}\n".encode()])
    say("open it in a browser; Ctrl-C ends it")
