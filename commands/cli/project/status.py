"""`tourney status`: what is on record, and of one tournament what remains to be done."""

from datetime import datetime, timedelta
from importlib import import_module
from typing import Annotated, Final, NamedTuple

from commands.cli.shared.selection import (
    BY_RULE,
    OF_LEDGER,
    WRITTEN,
    Selected,
    Selection,
    selecting,
)
from commands.cli.tables.table import Table, table_of
from commands.errors import counted
from ledger.counts import counts_of
from ledger.events.imports import ImportedRating, RatingsImported, set_of
from ledger.identity import Json
from ledger.storage.files import wal_of
from ledger.store import Ledger, utc_now
from projections.battles.imported_sets import (
    IMPORTED_EVENTS,
    IMPORTED_RATINGS,
    ImportedSet,
    imported_sets,
)
from projections.fold import fold
from projections.results.columns import Column, Kept, Shown
from projections.tournament.requests import BATCH_EVENTS, Batch, open_batches

_OF_ONE: Final = tuple(name for name in BY_RULE if name not in OF_LEDGER)
"""The options that select one tournament, and what of it counts."""


@selecting(*BY_RULE, *WRITTEN)
def status(ctx: Selected) -> None:
    """Show what is on record for every tournament, or what remains to be done of one.

    With --tournament, or another option that says what of it counts, shows what is done and what
    remains to be done by its current settings.

    Example: tourney status --tournament demo
    """
    if any(getattr(ctx.selection, name) != getattr(Selection, name) for name in _OF_ONE):
        # Imported here: it needs arrays, and counting events does not.
        import_module("commands.cli.project.outcomes").show_progress(ctx)
        return
    with Ledger.read_only(ctx.selection.path) as opened:
        table = status_table(opened, utc_now())
    ctx.selection.write(table)


_SOON: Final = timedelta(days=7)
_CURRENT: Final = (
    "counts include results of earlier instructions, rubrics and judges; `tourney status"
    " --tournament NAME` counts what is current"
)


class StatusRow(NamedTuple):
    """How much of what a tournament has on record, named as in its counts."""

    tournament: Kept[str]
    responses: Shown[int]
    responses_failed: Annotated[int, Column("Failed", is_counted=True, importance=1)]
    tokens: Annotated[int, Column(importance=0)]
    verdicts: Shown[int]
    without_verdict: Annotated[int, Column(is_counted=True)]
    decided: Shown[int]
    tied: Shown[int]
    inconsistent: Annotated[int, Column(is_counted=True)]
    samples: Annotated[int, Column(is_counted=True, importance=1)]
    unscorable: Annotated[int, Column(is_counted=True, importance=0)]


def status_table(ledger: Ledger, now: datetime) -> Table:
    """Show how much of what each tournament has on record, and what is in flight or imported.

    Results that are about to be lost at `now` are told of.
    """
    head = ledger.head
    tournaments = [stream for stream in ledger.streams() if set_of(stream) is None]
    counts = counts_of(ledger, tournaments, head.position)
    in_flight = open_batches(ledger.read(until=head.position, types=BATCH_EVENTS))
    events = [*ledger.read(until=head.position, types=IMPORTED_EVENTS)]
    imported, ratings = imported_sets(events), sorted(fold(IMPORTED_RATINGS, events).items())
    log = wal_of(ledger.path)
    n_bytes = sum(path.stat().st_size for path in (ledger.path, log) if path.exists())
    return table_of(
        StatusRow,
        (
            StatusRow(stream, **{name: getattr(each, name) for name in StatusRow._fields[1:]})
            for stream, each in counts.items()
        ),
        "tourney/status@1",
        "On record, all judges and settings together",
        notes=(
            (
                f"{ledger.path}: {counted(head.position, 'event')}, {n_bytes / 1e6:.1f} MB,"
                f" checkpoint {head}"
            ),
            *(
                [_CURRENT]
                if any(stream_counts.reconciled for stream_counts in counts.values())
                else []
            ),
            *(_in_flight(batch, now) for batch in in_flight),
            *(_imported(name, each) for name, each in imported.items()),
            *(_rated(name, each) for name, each in ratings),
        ),
        facts={
            "ledger": str(ledger.path),
            "checkpoint": str(head),
            "n_bytes": n_bytes,
            "in_flight": [_fields(batch) for batch in in_flight],
            "imported": [_of_set(name, each) for name, each in imported.items()],
            "imported_ratings": [
                {"set": name, **rating.fields}
                for name, each in ratings
                for rating in best_first(each)
            ],
        },
    )


def _in_flight(batch: Batch, now: datetime) -> str:
    n, to = len(batch.planned.queries), batch.planned.judge.label
    of = f"{batch.stream}: {counted(n, f'request to {to} is', f'requests to {to} are')}"
    until = batch.results_kept_until
    if batch.submitted is None or until is None:
        return f"{of} planned as a batch; it may exist: `tourney batch wait` looks for it"
    day = until.date().isoformat()
    urgent = "SOON LOST: " if until - now < _SOON else ""
    return (
        f"{of} in flight in {batch.submitted.provider_batch_id};"
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
        *([f"{each.n_ratings} imported ratings"] if each.n_ratings else []),
    ]
    return f"imported as {name}: {' and '.join(held)}"


def _rated(name: str, imported: RatingsImported) -> str:
    """List a set's ratings, each on the scale of its file."""
    ratings = ", ".join(
        f"{rating.entrant} {rating.rating:.1f}"
        + (f" on {rating.dimension}" if rating.dimension else "")
        + ("" if rating.ci_low is None else f" ({rating.ci_low:.1f} to {rating.ci_high:.1f})")
        for rating in best_first(imported)
    )
    return f"rated in {name}: {ratings}"


def best_first(imported: RatingsImported) -> list[ImportedRating]:
    """Return a set's ratings by dimension, the best first."""
    return sorted(imported.ratings, key=lambda it: (it.dimension or "", -it.rating))


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
