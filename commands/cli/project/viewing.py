"""`tourney view`: pages in the browser, on this machine alone."""

from typing import Annotated, TypeAlias

import typer

from commands.cli.shared import options
from commands.cli.shared.command import command
from commands.cli.shared.ledger import stream_of
from commands.cli.shared.output import say, write_lines
from commands.runs.viewing.viewer import view as show_pages
from ledger.store import Ledger

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


def _print_address(address: str) -> None:
    write_lines([f"{address}\n".encode()])
    say("open it in a browser; Ctrl-C ends the viewer")
