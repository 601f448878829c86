"""`tourney status` and `tourney doctor`: where things stand, and whether this machine is ready."""

import os
import sqlite3
from datetime import UTC, datetime

from commands.cli.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
)
from commands.cli.place import ledger_path
from commands.cli.streams import write
from commands.doctor import findings
from commands.errors import NotReady
from commands.render import Format
from commands.tables.status import status_table
from commands.tables.table import Column, Table
from commands.views import up_to_date
from commands.where_judged import providers
from ledger.snapshots import Snapshots
from ledger.store import Ledger, utc_now
from projections.flights import FLIGHTS
from projections.imported_sets import IMPORTED_SETS
from projections.tallies import OUTCOMES, REPLIES, RESPONSES, SAMPLES


def status(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Say what is on record, of every tournament. Example: tourney status."""
    path = ledger_path(ledger, config)
    with Ledger.read_only(path) as opened, Snapshots.beside(path) as snapshots:
        head = opened.head
        responses, replies, outcomes, samples = up_to_date(
            opened, (RESPONSES, REPLIES, OUTCOMES, SAMPLES), snapshots, head
        )
        (flights,) = up_to_date(opened, (FLIGHTS,), snapshots, head)
        (imported,) = up_to_date(opened, (IMPORTED_SETS,), snapshots, head)
        tallies = (responses, replies, outcomes, samples)
        in_flight = tuple(flights.open.values())
        table = status_table(opened, tallies, in_flight, imported.sets, utc_now())
    write(table, output_format, as_json=as_json)


def doctor(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Look at what a run needs on this machine. Example: tourney doctor."""
    path, today = ledger_path(ledger, config), datetime.now(UTC).date()
    by = providers(config, os.environ) if config.exists() else {}
    found = tuple(findings(path, sqlite3.sqlite_version_info, today=today, providers=by))
    table = Table(
        schema="tourney/doctor@1",
        title="This machine",
        columns=(Column("what", "What"), Column("grade", "Grade"), Column("says", "Found")),
        rows=tuple(each._asdict() for each in found),
    )
    write(table, output_format, as_json=as_json)
    bad = [each.what for each in found if each.grade == "bad"]
    if bad:
        raise NotReady(bad)
