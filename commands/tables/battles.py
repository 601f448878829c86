"""The battles and ratings of others that an import took in, as tables."""

from collections.abc import Mapping

from commands.battle_readers.formats import Format
from commands.counted import counted
from commands.import_battles import Taken
from commands.tables.table import Column, Table
from ledger.events.imports import ImportedRating, RatingsImported


def battles_table(name: str, of: Format, taken: Taken) -> Table:
    """Show what a file held; a battle without a verdict is no tie."""
    judges = sorted(taken.judges)
    n_ties = taken.winners["tie"] + taken.winners["tie (bothbad)"]
    notes = []
    if taken.n_known:
        known = f"{counted(taken.n_known, 'battle')} on the ledger already"
        notes.append(f"{known}, and not recorded again")
    if taken.n_before:
        notes.append(f"{name} holds {counted(taken.n_in_set, 'battle')} now, with those of before")
    return Table(
        schema="tourney/imported-battles@1",
        title="Battles",
        columns=(
            Column("name", "Set"),
            Column("format", "Format"),
            Column("battles", "Battles"),
            Column("entrants", "Entrants"),
            Column("ties", "Ties"),
            Column("no_verdict", "No verdict"),
            Column("skipped", "Skipped"),
            Column("judges", "Judges"),
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
    """Show what others say of each entrant, on their own scale.

    Args:
        newest: By the set of battles that they belong to.
    """
    none = "no ratings of others are here; `tourney import elo-ratings` takes them in"
    return Table(
        schema="tourney/imported-ratings@1",
        title="Ratings of others",
        columns=(
            Column("set", "Set"),
            Column("dimension", "Dimension"),
            Column("entrant", "Entrant"),
            Column("rating", "Rating", 1),
            Column("ci_low", "95 % low", 1),
            Column("ci_high", "95 % high", 1),
            Column("n_battles", "Battles"),
            Column("source", "Source"),
        ),
        rows=tuple(
            {"set": name, **each.fields}
            for name, event in sorted(newest.items())
            for each in sorted(event.ratings, key=_from_the_best_down)
        ),
        notes=() if newest else (none,),
        facts={
            "sets": [
                {"set": name, "arena": event.arena, "judge_model": event.judge_model}
                for name, event in sorted(newest.items())
            ]
        },
    )


def _from_the_best_down(each: ImportedRating) -> tuple[str, float]:
    return each.dimension or "", -each.rating
