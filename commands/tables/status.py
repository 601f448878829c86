"""Where a ledger stands, as a table."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from commands.counted import counted
from commands.tables.table import Column, Table
from ledger.counts import Counts
from ledger.identity import Json, StreamId
from ledger.storage.wal import wal_of
from ledger.store import Ledger
from projections.battles.imported_sets import ImportedSet
from projections.tournament.batches import Batch

_SOON: Final = timedelta(days=7)
_COUNTED: Final = (
    Column("responses", "Responses"),
    Column("responses_failed", "Failed"),
    Column("tokens", "Tokens"),
    Column("verdicts", "Verdicts"),
    Column("without_verdict", "Without verdict"),
    Column("decided", "Decided"),
    Column("tied", "Tied"),
    Column("inconsistent", "Inconsistent"),
    Column("samples", "Samples"),
    Column("unscorable", "Unscorable"),
)


def status_table(
    ledger: Ledger,
    counts: Mapping[StreamId, Counts],
    in_flight: Sequence[Batch],
    imported: Mapping[str, ImportedSet],
    now: datetime,
) -> Table:
    """Show how much of what each tournament has on record, and what is in flight.

    Args:
        ledger: What is shown.
        counts: What is on record, by tournament.
        in_flight: The batches that may still be answered.
        imported: Sets of battles of others, by name.
        now: From which results that are about to be lost are told.
    """
    head = ledger.head
    log = wal_of(ledger.path)
    n_bytes = sum(each.stat().st_size for each in (ledger.path, log) if each.exists())
    return Table(
        schema="tourney/status@1",
        title="On record",
        columns=(Column("tournament", "Tournament"), *_COUNTED),
        rows=tuple(
            {"tournament": stream, **{column.key: getattr(each, column.key) for column in _COUNTED}}
            for stream, each in counts.items()
        ),
        notes=(
            (
                f"{ledger.path}: {counted(head.position, 'event')}, {n_bytes / 1e6:.1f} MB,"
                f" checkpoint {head}"
            ),
            *(_in_flight(batch, now) for batch in in_flight),
            *(_imported(name, each) for name, each in imported.items()),
        ),
        facts={
            "ledger": str(ledger.path),
            "checkpoint": str(head),
            "n_bytes": n_bytes,
            "in_flight": [_fields(batch) for batch in in_flight],
            "imported": [_of_set(name, each) for name, each in imported.items()],
        },
    )


def _in_flight(batch: Batch, now: datetime) -> str:
    queries = counted(len(batch.planned.queries), "query", "queries")
    of = f"{batch.stream}: {queries} to {batch.planned.judge.label}"
    until = batch.results_kept_until
    if batch.submitted is None or until is None:
        return f"{of} were planned as a batch that may exist; `tourney batch wait` finds it"
    day = until.date().isoformat()
    urgent = "SOON LOST: " if until - now < _SOON else ""
    return (
        f"{of} are in flight in {batch.submitted.provider_batch_id};"
        f" `tourney batch wait` receives them. {urgent}the provider keeps the results until {day}"
    )


def _fields(batch: Batch) -> dict[str, Json]:
    until = batch.results_kept_until
    return {
        "tournament": batch.stream,
        "batch": batch.submitted.provider_batch_id if batch.submitted else None,
        "judge": batch.planned.judge.label,
        "n_queries": len(batch.planned.queries),
        "results_kept_until": None if until is None else until.isoformat(),
    }


def _imported(name: str, each: ImportedSet) -> str:
    n_battles, n_entrants = each.winners.total(), each.n_entrants
    held = [
        *([f"{counted(n_battles, 'battle')} of {n_entrants} entrants"] if n_battles else []),
        *([f"ratings of {each.n_ratings} by others"] if each.n_ratings else []),
    ]
    return f"imported as {name}: {' and '.join(held)}"


def _of_set(name: str, each: ImportedSet) -> dict[str, Json]:
    n_won_by = each.winners
    return {
        "name": name,
        "battles": n_won_by.total(),
        "decided": n_won_by["model_a"] + n_won_by["model_b"],
        "tied": n_won_by["tie"] + n_won_by["tie (bothbad)"],
        "no_verdict": n_won_by["no verdict"],
        "entrants": each.n_entrants,
        "ratings": each.n_ratings,
    }
