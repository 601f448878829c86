"""`tourney view` and `annotate`: pages in the browser, on this machine alone."""

from typing import Annotated, TypeAlias

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.command import command
from commands.cli.shared.imported_set import set_name
from commands.cli.shared.ledger import read_tournament, stream_of
from commands.cli.shared.output import say, write_lines
from commands.cli.shared.workspace import ledger_to_change
from commands.errors import ConfigurationError, counted
from commands.importing.votes import open_ballot_box
from commands.runs.resolve import on_dimension
from commands.runs.viewing.annotator import annotate as collect_votes
from commands.runs.viewing.viewer import view as show_pages
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.tournament.state import Tournament

Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="The port to listen on. Default: any free one.")
]


@command
def view(paths: options.Paths, tournament: options.Tournament = None, port: Port = 0) -> None:
    """Show a tournament in the browser while it is played.

    It prints an address of this machine that holds a secret, and only reads the ledger. Ctrl-C ends
    it.

    Example: tourney view
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        stream = stream_of(opened, tournament, paths.config)
    show_pages(paths.of_ledger, stream, port, _print_address)


@command
def annotate(
    paths: options.Paths,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="What the votes are labelled with.")
    ],
    name: Annotated[str, options.of_set("Name of the set that the votes join.")] = "votes",
    disagreement: Annotated[
        bool,
        typer.Option(
            "--disagreement",
            help="Draw among the pairs on which orders or judges disagree. Default: among all.",
        ),
    ] = False,
    dimension: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.dimensions,
            help="What to compare, if the tournament has several dimensions.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="The seed of the draw; it is recorded."),
    ] = None,
    limit: options.Limit = None,
    tournament: options.Tournament = None,
    port: Port = 0,
) -> None:
    """Vote in the browser on pairs of responses, without names.

    Each vote is recorded at once, as a battle of a set; the same command goes on where you stopped.

    Example: tourney annotate --annotator ann --limit 60
    """
    with ledger_to_change(paths) as opened:
        state = read_tournament(opened, tournament, None, paths.config)
        box = open_ballot_box(
            opened,
            state,
            set_name(name),
            annotator,
            dimension=_only_dimension(state, dimension),
            design="disagreement" if disagreement else "random",
            seed=seed,
            limit=limit,
        )
        collect_votes(box, port, _print_address)
        say(f"{counted(box.n_done, 'vote')} of {len(box.ballots)} in set {box.name!r}")


def _only_dimension(state: Tournament, named: str | None) -> Dimension:
    """Return the dimension that is named, or the only one."""
    known = [each.dimension for each in on_dimension(state, named).dimensions]
    if len(known) != 1:
        raise ConfigurationError([f"choose one with --dimension: {', '.join(known)}"])
    return known[0]


def _print_address(address: str) -> None:
    write_lines([f"{address}\n".encode()])
    say("open it in a browser; Ctrl-C ends it")
