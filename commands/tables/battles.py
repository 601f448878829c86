"""The battles and ratings of others that an import took in, as tables."""

from commands.battle_readers.formats import Format
from commands.counted import counted
from commands.import_battles import Taken
from commands.tables.table import Column, Table
from ledger.events.imported_ratings import RatingsImported


def battles_table(name: str, of: Format, taken: Taken) -> Table:
    """Show what a file held; a battle without a verdict is no tie."""
    judges = sorted(taken.judges)
    n_ties = taken.winners["tie"] + taken.winners["tie (bothbad)"]
    known = f"{counted(taken.n_known, 'battle')} on the ledger already, and not recorded again"
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
        notes=(known,) if taken.n_known else (),
        facts={"judges": judges, "n_known": taken.n_known},
    )


def imported_ratings_table(name: str, event: RatingsImported) -> Table:
    """Show what a file said of each entrant, on its own scale."""
    return Table(
        schema="tourney/imported-ratings@1",
        title="Ratings of others",
        columns=(
            Column("entrant", "Entrant"),
            Column("rating", "Rating", 1),
            Column("ci_low", "95 % low", 1),
            Column("ci_high", "95 % high", 1),
            Column("n_battles", "Battles"),
            Column("source", "Source"),
        ),
        rows=tuple(each.fields for each in event.ratings),
        facts={"name": name, "arena": event.arena, "judge_model": event.judge_model},
    )
