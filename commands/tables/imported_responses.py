"""The responses that an import took in, as a table."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from commands.import_responses import Found, Imported
from commands.tables.table import Column, Table

_Place: TypeAlias = tuple[str, str | None]  # a file, and an entrant


def imported_responses_table(imported: Imported) -> Table:
    """Show what each file held of each entrant; whose a bad line is, is not asked."""
    new, known = _counts(imported.new), _counts(imported.known)
    skipped: Counter[_Place] = Counter((str(each.file), None) for each in imported.bad)
    return Table(
        schema="tourney/imported-responses@1",
        title="Responses",
        columns=(
            Column("file", "File"),
            Column("entrant", "Entrant"),
            Column("responses", "Responses"),
            Column("already_there", "Already there"),
            Column("skipped", "Skipped"),
        ),
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


def _counts(found: Sequence[Found]) -> Counter[_Place]:
    return Counter((str(each.file), str(each.response.entrant_id)) for each in found)
