"""`tourney status`, `doctor` and `prices`: what is on record, this machine, the price table."""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from commands.cli.shared import options
from commands.cli.shared.command import command
from commands.cli.shared.ledger import DEFAULT_CONFIG
from commands.cli.shared.output import Writer
from commands.cli.tables.spending import prices_table
from commands.cli.tables.status import status_table
from commands.cli.tables.table import Table, columns
from commands.errors import NotReady
from commands.runs.doctor import findings
from commands.settings.lookup import judge_providers
from commands.settings.reader import read_settings
from commands.spending.prices import price_table
from commands.spending.pricing import price_book
from ledger.counts import counts_of
from ledger.events.imports import set_of
from ledger.recorded import Recorded
from ledger.store import Ledger, utc_now
from projections.battles.imported_sets import IMPORTED_EVENTS, imported_sets
from projections.tournament.batches import BATCH_EVENTS, open_batches


@command
def status(paths: options.Paths, writer: Writer) -> None:
    """Show what is on record for every tournament.

    Example: tourney status
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        table = _on_record(opened)
    writer.write(table)


def _on_record(ledger: Ledger) -> Table:
    """Count the events; read batches and imported sets only if there are any."""
    until, streams = ledger.head.position, ledger.streams()
    tournaments = [stream for stream in streams if set_of(stream) is None]
    counts = {stream: counts_of(ledger, stream, until) for stream in tournaments}
    batches: Iterable[Recorded] = ()
    if any(each.batches for each in counts.values()):
        batches = ledger.read(until=until, types=BATCH_EVENTS)
    imported: Sequence[Recorded] = ()
    if len(tournaments) < len(streams):
        imported = [*ledger.read(until=until, types=IMPORTED_EVENTS)]
    return status_table(ledger, counts, open_batches(batches), imported_sets(imported), utc_now())


@command
def doctor(paths: options.Paths, writer: Writer) -> None:
    """Check that this machine is ready for a run.

    Example: tourney doctor
    """
    path, today = paths.of_ledger, datetime.now(UTC).date()
    by = judge_providers(paths.config, os.environ) if paths.config.exists() else {}
    found = tuple(findings(path, sqlite3.sqlite_version_info, today=today, providers=by))
    table = Table(
        schema="tourney/doctor@1",
        title="This machine",
        columns=columns("what", "grade", says="Found"),
        rows=tuple(each._asdict() for each in found),
    )
    writer.write(table)
    bad = [each.what for each in found if each.grade == "bad"]
    if bad:
        raise NotReady(bad)


@command
def prices(writer: Writer, config: options.Config = DEFAULT_CONFIG) -> None:
    """Show the price table and its date.

    Example: tourney prices --json
    """
    if config == DEFAULT_CONFIG and not config.exists():
        table = price_table()
    else:
        table = price_book(read_settings(config, os.environ), config.parent).table
    writer.write(prices_table(table, datetime.now(UTC).date()))
