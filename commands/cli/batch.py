"""`tourney batch`: list, receive, adopt, cancel and forget a provider's batches."""

from typing import Annotated

import typer

from commands.backends.wiring import ConfiguredBackends
from commands.cli.shared import completion, options
from commands.cli.shared.command import command
from commands.cli.shared.ledger import read_tournament
from commands.cli.shared.output import say
from commands.cli.shared.terminal import console
from commands.cli.shared.views import tournament_view
from commands.cli.shared.workspace import workspace
from commands.cli.tables.status import batches_table
from commands.cli.tables.table import Table
from commands.errors import NotFound
from commands.judging import session
from commands.judging.batch_recovery import adopt_named, forget_batch, port_for
from commands.judging.unreadable import tell_unreadable
from commands.ports import BatchJudgeOf
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.workspace import Workspace
from ledger.store import Ledger
from projections.tournament.state import Tournament

app = typer.Typer(no_args_is_help=True)

BatchArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", autocompletion=completion.batches, help="The provider's batch id."
    ),
]


@app.command("list")
@tournament_view
def list_(source: JudgedTournament) -> Table:
    """List batches and their status.

    Example: tourney batch list --json
    """
    return batches_table(source.state, source.named_judge)


@app.command()
@command
def wait(paths: options.Paths) -> None:
    """Wait for open batches, record their replies, reconcile.

    Example: tourney batch wait
    """
    place = workspace(paths)
    with place.recorder(say) as recorder, console() as talk:
        if not recorder.state.open_batches:
            say("nothing is in flight")
            return
        backends = ConfiguredBackends(place.settings, place.folder)
        session.wait_for_batches(recorder, place.settings, place.folder, backends, talk)
        state = recorder.state
    for judge in state.panel:
        tell_unreadable(state, [each.prompt_id for each in state.bank], judge, say)


@app.command()
@command
def adopt(batch: BatchArgument, paths: options.Paths) -> None:
    """Adopt a batch that was sent but not recorded, or that was given up.

    Example: tourney batch adopt msgbatch_01
    """
    place = workspace(paths)
    with place.recorder(say) as recorder:
        adopt_named(recorder, _ports(place, recorder.state), batch)
    say(f"{batch} is adopted; `tourney batch wait` receives it")


@app.command()
@command
def cancel(batch: BatchArgument, paths: options.Paths) -> None:
    """Cancel the queries of a batch that are not answered yet.

    Example: tourney batch cancel msgbatch_01
    """
    place = workspace(paths)
    with Ledger.read_only(paths.of_ledger) as opened:
        state = read_tournament(opened, None, None, paths.config)
    named = {
        each.submitted.provider_batch_id: each for each in state.open_batches if each.submitted
    }
    if batch not in named:
        raise NotFound(f"no batch in flight is named {batch!r}: {', '.join(named) or 'none is'}")
    stopped = port_for(state, named[batch], _ports(place, state)).cancel(batch)
    say(f"{batch} {'has already ended' if stopped.has_ended else 'is being canceled'};")
    say("its replies so far are billed: `tourney batch wait` receives them")


@app.command()
@command
def forget(batch: BatchArgument, paths: options.Paths) -> None:
    """Forget a batch that the provider deleted, or whose results do not come.

    Example: tourney batch forget msgbatch_01
    """
    place = workspace(paths)
    with place.recorder(say) as recorder:
        forget_batch(recorder, _ports(place, recorder.state), batch)
    say(f"{batch} is forgotten: its unanswered queries are open again")


def _ports(place: Workspace, state: Tournament) -> BatchJudgeOf:
    """Return the clients for the providers of the tournament's batches."""
    if not state.own_batches:
        raise NotFound("this tournament has sent no batch")
    return session.batch_ports(place.settings, ConfiguredBackends(place.settings, place.folder))
