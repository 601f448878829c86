"""`tourney status`: what is on record, and of one tournament what remains to be done."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Final

import typer

from commands.cli.shared.selection import (
    BY_RULE,
    OF_LEDGER,
    WRITTEN,
    Selection,
    selecting,
)
from commands.cli.tables.status import status_table
from commands.cli.tables.table import Table
from ledger.counts import counts_of
from ledger.events.imports import set_of
from ledger.recorded import Recorded
from ledger.store import Ledger, utc_now
from projections.battles.imported_sets import IMPORTED_EVENTS, IMPORTED_RATINGS, imported_sets
from projections.fold import fold
from projections.tournament.batches import BATCH_EVENTS, open_batches

_OF_ONE: Final = tuple(name for name in BY_RULE if name not in OF_LEDGER)
"""The options that select one tournament, and what of it counts."""


@selecting(*BY_RULE, *WRITTEN)
def status(
    ctx: typer.Context,
) -> None:
    """Show what is on record for every tournament, or what remains to be done of one.

    With --tournament, or another option that says what of it counts, shows what is done and what
    remains to be done by its current settings.

    Example: tourney status --tournament demo
    """
    selection: Selection = ctx.obj
    if any(getattr(selection, name) != getattr(Selection, name) for name in _OF_ONE):
        # Imported here: it needs arrays, and counting events does not.
        import_module("commands.cli.project.progress").show_progress(ctx)
        return
    with Ledger.read_only(selection.path) as opened:
        table = _on_record(opened)
    selection.writer.write(table)


def _on_record(ledger: Ledger) -> Table:
    """Count the events; read batches and imported sets only if there are any."""
    until, streams = ledger.head.position, ledger.streams()
    tournaments = [stream for stream in streams if set_of(stream) is None]
    counts = counts_of(ledger, tournaments, until)
    batches: Iterable[Recorded] = ()
    if any(count.batches for count in counts.values()):
        batches = ledger.read(until=until, types=BATCH_EVENTS)
    imported: Sequence[Recorded] = ()
    if len(tournaments) < len(streams):
        imported = [*ledger.read(until=until, types=IMPORTED_EVENTS)]
    sets, ratings = imported_sets(imported), fold(IMPORTED_RATINGS, imported)
    return status_table(ledger, counts, open_batches(batches), sets, utc_now(), ratings)
