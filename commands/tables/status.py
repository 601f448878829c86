"""Where a ledger stands, as a table."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from commands.counted import counted
from commands.tables.table import Column, Table
from ledger.events.battles import set_of
from ledger.identity import Json
from ledger.store import Ledger
from ledger.wal import wal_of
from projections.flights import Flight
from projections.imported_sets import ImportedSet
from projections.tallies import Tally

_SOON: Final = timedelta(days=7)


def status_table(
    ledger: Ledger,
    tallies: Sequence[Tally],
    flights: Sequence[Flight],
    imported: Mapping[str, ImportedSet],
    now: datetime,
) -> Table:
    """Show how much of what each tournament has on record, and what is in flight.

    Args:
        ledger: What is shown.
        tallies: Of its responses, replies, outcomes and samples.
        flights: Its batches in flight.
        imported: Sets of battles of others, by name.
        now: From which results that are about to be lost are told.
    """
    responses, replies, outcomes, samples = tallies
    head = ledger.head
    log = wal_of(ledger.path)
    n_bytes = sum(each.stat().st_size for each in (ledger.path, log) if each.exists())
    return Table(
        schema="tourney/status@1",
        title="On record",
        columns=(
            Column("tournament", "Tournament"),
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
        ),
        rows=tuple(
            {
                "tournament": stream,
                **_of_responses(responses.of(stream)),
                **_of_replies(replies.of(stream)),
                **_of_outcomes(outcomes.of(stream)),
                **_of_samples(samples.of(stream)),
            }
            for stream in ledger.streams()
            if set_of(stream) is None
        ),
        notes=(
            (
                f"{ledger.path}: {counted(head.position, 'event')}, {n_bytes / 1e6:.1f} MB,"
                f" checkpoint {head}"
            ),
            *(_in_flight(flight, now) for flight in flights),
            *(_imported(name, each) for name, each in sorted(imported.items())),
        ),
        facts={
            "ledger": str(ledger.path),
            "checkpoint": str(head),
            "n_bytes": n_bytes,
            "in_flight": [_fields(flight) for flight in flights],
            "imported": [_of_set(name, each) for name, each in sorted(imported.items())],
        },
    )


def _in_flight(flight: Flight, now: datetime) -> str:
    queries = counted(flight.n_queries, "query", "queries")
    of = f"{flight.stream}: {queries} to {flight.judge}"
    until = flight.results_kept_until
    if until is None:
        return f"{of} were planned as a batch that may exist; `tourney batch wait` finds it"
    day = until.date().isoformat()
    urgent = "SOON LOST: " if until - now < _SOON else ""
    return (
        f"{of} are in flight in {flight.provider_batch_id}; `tourney batch wait` receives them."
        f" {urgent}the provider keeps the results until {day}"
    )


def _fields(flight: Flight) -> dict[str, Json]:
    until = flight.results_kept_until
    return {
        "tournament": flight.stream,
        "batch": flight.provider_batch_id,
        "judge": flight.judge,
        "n_queries": flight.n_queries,
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


def _of_responses(counts: Mapping[str, int]) -> dict[str, Json]:
    return {key: counts.get(key, 0) for key in ("responses", "responses_failed", "tokens")}


def _of_replies(counts: Mapping[str, int]) -> dict[str, Json]:
    n_verdicts = counts.get("verdicts", 0)
    return {"verdicts": n_verdicts, "without_verdict": sum(counts.values()) - n_verdicts}


def _of_outcomes(counts: Mapping[str, int]) -> dict[str, Json]:
    return {
        "decided": counts.get("a", 0) + counts.get("b", 0),
        "tied": counts.get("tie", 0),
        "inconsistent": counts.get("inconsistent", 0),
    }


def _of_samples(counts: Mapping[str, int]) -> dict[str, Json]:
    return {key: counts.get(key, 0) for key in ("samples", "unscorable")}
