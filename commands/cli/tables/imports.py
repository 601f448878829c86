"""Imported battles, responses and adapters as tables."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from commands.cli.tables.table import Table, columns
from commands.entrants.hydra_import import ImportedAdapter
from commands.errors import counted, shortened
from commands.importing.battles import BattleImport, unrated_notes
from commands.importing.formats.catalogue import BattleFormat
from commands.importing.responses import FoundResponse, ImportedResponses
from ledger.identity import Fields


def battles_table(of: BattleFormat, files: Sequence[BattleImport]) -> Table:
    """Return a row that counts each file's battles; one without a verdict is not a tie."""
    n_known = sum(taken.n_known for taken in files)
    n_in_set = {taken.file.name: taken.n_in_set for taken in files}
    notes = [f"{taken.file.path}: {note}" for taken in files for note in unrated_notes(taken)]
    if n_known:
        notes.append(f"{counted(n_known, 'battle')} were already on record and left out")
    if any(taken.n_before for taken in files):
        notes += [f"{name} now holds {counted(n, 'battle')}" for name, n in n_in_set.items()]
    alike = {" and ".join(map(ascii, names)) for taken in files for names in taken.look_alikes}
    notes += [f"{names} look alike, but count as different entrants" for names in sorted(alike)]
    return Table(
        schema="tourney/imported-battles@1",
        title="Battles",
        columns=(
            *columns("file", name="Set"),
            *columns("format", "battles", "entrants", "ties", "no_verdict", "skipped", "judges"),
        ),
        rows=tuple(_counted_row(of, taken) for taken in files),
        notes=tuple(notes),
        facts={
            "judges": sorted(set[str]().union(*(taken.judges for taken in files))),
            "n_known": n_known,
            "n_unrated": sum(taken.unrated.total() for taken in files),
            "n_in_set": sum(n_in_set.values()),
        },
    )


def _counted_row(of: BattleFormat, taken: BattleImport) -> Fields:
    return {
        "file": str(taken.file.path),
        "name": taken.file.name,
        "format": f"{of.name}@{of.mapping_version}",
        "battles": taken.n_battles,
        "entrants": len(taken.entrants),
        "ties": taken.winners["tie"] + taken.winners["tie (bothbad)"],
        "no_verdict": taken.winners["no verdict"],
        "skipped": taken.n_left_out,
        "judges": shortened(sorted(taken.judges)) or None,
    }


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
