"""Where a ledger stands, as a table."""

from collections.abc import Mapping

from commands.counted import counted
from commands.tables.table import Column, Table
from ledger.identity import Json
from ledger.store import Ledger
from projections.tallies import Tally


def status_table(ledger: Ledger, responses: Tally, replies: Tally, outcomes: Tally) -> Table:
    """Show how much of what each tournament has on record."""
    head = ledger.head
    n_bytes = ledger.path.stat().st_size
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
        ),
        rows=tuple(
            {
                "tournament": stream,
                **_of_responses(responses.of(stream)),
                **_of_replies(replies.of(stream)),
                **_of_outcomes(outcomes.of(stream)),
            }
            for stream in ledger.streams()
        ),
        notes=(
            (
                f"{ledger.path}: {counted(head.position, 'event')}, {n_bytes / 1e6:.1f} MB,"
                f" checkpoint {head}"
            ),
        ),
        facts={"ledger": str(ledger.path), "checkpoint": str(head), "n_bytes": n_bytes},
    )


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
