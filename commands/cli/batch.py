"""`tourney batch`: list, receive, cancel and forget a provider's batches."""

from datetime import datetime
from typing import Annotated, NamedTuple

import typer

from commands.backends.wiring import ConfiguredBackends
from commands.batching.recovery import SideOf, adopt_named, forget_batch
from commands.cli.shared import completion
from commands.cli.shared.output import say
from commands.cli.shared.reading import read_verdicts, show
from commands.cli.shared.selection import JUDGED, OF_LEDGER, WRITTEN, Selected, selecting
from commands.cli.shared.terminal import console
from commands.cli.shared.workspace import workspace
from commands.cli.tables.table import Table, table_of
from commands.decisions.recorder import Recorder
from commands.errors import NotFound
from commands.judging import session
from commands.judging.unreadable import tell_unreadable
from commands.ports import Console
from commands.runs.workspace import Workspace
from ledger.store import Ledger
from projections.results.columns import Column, Shown
from projections.tournament.requests import Batch
from projections.tournament.state import Tournament

BatchArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", autocompletion=completion.batches, help="The provider's batch id."
    ),
]


@selecting(*JUDGED, *WRITTEN)
def list_batches(ctx: Selected) -> None:
    """List batches and their status.

    Example: tourney batch list --json
    """
    show(ctx, read_verdicts, lambda source: batches_table(source.state, source.named_judge))


@selecting(*OF_LEDGER)
def wait(
    ctx: Selected,
    batch: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            autocompletion=completion.batches,
            help="A batch that was sent but not recorded, or that was given up: take it up again.",
        ),
    ] = None,
) -> None:
    """Wait for open batches, record their replies, reconcile.

    Example: tourney batch wait
    """
    place = workspace(ctx.selection.config, ctx.selection.ledger)
    with place.recorder(say) as recorder, console() as talk:
        if batch is not None and batch not in _in_flight(recorder.state):
            adopt_named(recorder, _sides(place, recorder, talk), batch)
            say(f"{batch} is taken up")
        if not recorder.state.open_batches:
            say("nothing is in flight")
            return
        backends = ConfiguredBackends(place.settings, place.folder)
        session.wait_for_batches(recorder, place.settings, place.folder, backends, talk)
        state = recorder.state
    for judge in state.panel:
        tell_unreadable(state, [prompt.prompt_id for prompt in state.bank], judge, say)


@selecting(*OF_LEDGER)
def cancel(ctx: Selected, batch: BatchArgument) -> None:
    """Cancel the requests of a batch that are not answered yet.

    Example: tourney batch cancel msgbatch_01
    """
    selection = ctx.selection
    place = workspace(selection.config, selection.ledger)
    with Ledger.read_only(selection.path) as opened:
        state = selection.state_in(opened)
    named = _in_flight(state)
    if batch not in named:
        raise NotFound(f"no batch in flight is named {batch!r}: {', '.join(named) or 'none is'}")
    backends = ConfiguredBackends(place.settings, place.folder)
    stopped = session.batch_port(state, named[batch], place.settings, backends).cancel(batch)
    say(f"{batch} {'has already ended' if stopped.has_ended else 'is being canceled'};")
    say("its replies so far are billed: `tourney batch wait` receives them")


@selecting(*OF_LEDGER)
def forget(ctx: Selected, batch: BatchArgument) -> None:
    """Forget a batch that the provider deleted, or whose results do not come.

    Example: tourney batch forget msgbatch_01
    """
    place = workspace(ctx.selection.config, ctx.selection.ledger)
    with place.recorder(say) as recorder, console() as talk:
        forget_batch(recorder, _sides(place, recorder, talk), batch)
    say(f"{batch} is forgotten: its unanswered requests are open again")


def _in_flight(state: Tournament) -> dict[str, Batch]:
    """Return the batches that the provider has, by its id."""
    return {
        batch.submitted.provider_batch_id: batch for batch in state.open_batches if batch.submitted
    }


def _sides(place: Workspace, recorder: Recorder, talk: Console) -> SideOf:
    """Return the sides of the tournament's batches."""
    if not recorder.state.own_batches:
        raise NotFound("this tournament has sent no batch")
    backends = ConfiguredBackends(place.settings, place.folder)
    return session.batch_sides(recorder, place.settings, place.folder, backends, talk)


class BatchRow(NamedTuple):
    """A batch at a provider."""

    number: Annotated[int, Column("No.")]
    batch: Shown[str | None]
    status: Shown[str]
    judge: Annotated[str, Column("Asked", meaning="the judge, or the entrant")]
    n_queries: Annotated[int, Column("Requests")]
    n_verdicts: Annotated[int, Column("Answered", meaning="with a verdict, or a response")]
    expected_usd: Annotated[float | None, Column("Expected $", 4)]
    worst_usd: float | None
    planned_at: str | None
    expires_at: str | None
    results_kept_until: Annotated[str | None, Column("Kept until")]


def batches_table(state: Tournament, judge: str | None) -> Table:
    """Return a row for each batch of a tournament, or of one judge, the oldest first."""
    rows = [batch for batch in state.own_batches if judge in {None, batch.planned.judge.label}]
    n_open = sum(batch.is_open for batch in rows)
    return table_of(
        BatchRow,
        (_row(state, batch) for batch in rows),
        "tourney/batches@1",
        "Batches",
        notes=(f"{n_open} of {len(rows)} are open; `tourney batch wait` receives them",)
        if n_open
        else ("nothing is in flight",),
    )


def _row(state: Tournament, batch: Batch) -> BatchRow:
    planned, submitted = batch.planned, batch.submitted
    return BatchRow(
        number=planned.number,
        batch=submitted.provider_batch_id if submitted else None,
        status=batch.status,
        judge=planned.judge.label,
        n_queries=len(planned.queries),
        n_verdicts=sum(
            request in state.responses
            or all(key in state.verdicts for key in state.queries_in(request))
            for request in planned.queries
        ),
        expected_usd=planned.expected_usd,
        worst_usd=planned.worst_usd,
        planned_at=_minute(batch.recorded.recorded_at),
        expires_at=_minute(submitted.expires_at) if submitted else None,
        results_kept_until=_minute(batch.results_kept_until),
    )


def _minute(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")
