"""Imported battles, ratings, responses and adapters as tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from commands.cli.tables.table import Table, columns
from commands.entrants.hydra_import import ImportedAdapter
from commands.errors import counted
from commands.importing.battles import BattleImport
from commands.importing.formats.catalogue import BattleFormat
from commands.importing.responses import FoundResponse, ImportedResponses
from ledger.events.imports import RatingsImported


def battles_table(name: str, of: BattleFormat, taken: BattleImport) -> Table:
    """Return one row that counts a file's battles; one without a verdict is not a tie."""
    judges = sorted(taken.judges)
    n_ties = taken.winners["tie"] + taken.winners["tie (bothbad)"]
    notes = []
    if taken.n_known:
        notes.append(f"{counted(taken.n_known, 'battle')} were already on record and left out")
    if taken.n_before:
        notes.append(f"{name} now holds {counted(taken.n_in_set, 'battle')}, earlier ones included")
    return Table(
        schema="tourney/imported-battles@1",
        title="Battles",
        columns=(
            *columns(name="Set"),
            *columns("format", "battles", "entrants", "ties", "no_verdict", "skipped", "judges"),
        ),
        rows=(
            {
                "name": name,
                "format": f"{of.name}@{of.mapping_version}",
                "battles": taken.n_battles,
                "entrants": len(taken.entrants),
                "ties": n_ties,
                "no_verdict": taken.winners["no verdict"],
                "skipped": taken.n_skipped,
                "judges": ", ".join(judges) or None,
            },
        ),
        notes=tuple(notes),
        facts={"judges": judges, "n_known": taken.n_known, "n_in_set": taken.n_in_set},
    )


def imported_ratings_table(newest: Mapping[str, RatingsImported]) -> Table:
    """Return a row for each of the newest ratings of each set, on its own scale."""
    none = "no imported ratings; `tourney import elo-ratings` imports some"
    return Table(
        schema="tourney/imported-ratings@1",
        title="Imported ratings",
        columns=(
            *columns("set", "dimension", "entrant"),
            *columns("rating", digits=1, ci_low="95 % low", ci_high="95 % high"),
            *columns("n_battles", "source"),
        ),
        rows=tuple(
            {"set": name, **each.fields}
            for name, event in sorted(newest.items())
            for each in sorted(event.ratings, key=lambda it: (it.dimension or "", -it.rating))
        ),
        notes=() if newest else (none,),
        facts={
            "sets": [
                {"set": name, "arena": event.arena, "judge_model": event.judge_model}
                for name, event in sorted(newest.items())
            ]
        },
    )


def imported_table(out: Path, imported: Sequence[ImportedAdapter]) -> Table:
    """Return a row for each adapter, with its source."""
    return Table(
        schema="tourney/hydra-weights@1",
        title=f"Adapters in {out}",
        columns=columns("adapter", "rank", source="From"),
        rows=tuple(
            {"adapter": each.name, "rank": each.folder.rank, "source": str(each.source)}
            for each in imported
        ),
        facts={"folder": str(out)},
    )


_Place: TypeAlias = tuple[str, str | None]  # a file, and an entrant


def imported_responses_table(imported: ImportedResponses) -> Table:
    """Return a row for each file and entrant; bad lines count for the file alone."""
    new, known = _counts(imported.new), _counts(imported.known)
    skipped: Counter[_Place] = Counter((str(each.file), None) for each in imported.bad)
    return Table(
        schema="tourney/imported-responses@1",
        title="Responses",
        columns=columns("file", "entrant", "responses", "already_there", "skipped"),
        rows=tuple(
            {
                "file": place[0],
                "entrant": place[1],
                "responses": new[place],
                "already_there": known[place],
                "skipped": skipped[place],
            }
            for place in sorted({*new, *known, *skipped}, key=str)
        ),
    )


def _counts(found: Sequence[FoundResponse]) -> Counter[_Place]:
    return Counter((str(each.file), str(each.response.entrant_id)) for each in found)
