"""`tourney status`: what is on record."""

from collections.abc import Iterable, Sequence

import typer

from commands.cli.shared.selection import OF_LEDGER, WRITTEN, Selection, selecting
from commands.cli.tables.status import status_table
from commands.cli.tables.table import Table
from ledger.counts import counts_of
from ledger.events.imports import set_of
from ledger.recorded import Recorded
from ledger.store import Ledger, utc_now
from projections.battles.imported_sets import IMPORTED_EVENTS, IMPORTED_RATINGS, imported_sets
from projections.fold import fold
from projections.tournament.batches import BATCH_EVENTS, open_batches


@selecting(*OF_LEDGER, *WRITTEN)
def status(
    ctx: typer.Context,
) -> None:
    """Show what is on record for every tournament.

    Example: tourney status
    """
    selection: Selection = ctx.obj
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
