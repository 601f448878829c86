"""Imported battles, responses and adapters as tables."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from commands.cli.tables.table import Table, table_of
from commands.entrants.hydra_import import ImportedAdapter
from commands.errors import counted, shortened
from commands.importing.battles import BattleImport, unrated_notes
from commands.importing.responses import FoundResponse, ImportedResponses
from projections.results.columns import Column, Shown


class ImportedFileRow(NamedTuple):
    """How many battles of a file were imported."""

    file: Shown[str]
    name: Annotated[str, Column("Set")]
    format: Shown[str]
    battles: Shown[int]
    entrants: Shown[int]
    ties: Shown[int]
    no_verdict: Shown[int]
    skipped: Shown[int]
    judges: Shown[str | None]


def battles_table(files: Sequence[BattleImport]) -> Table:
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
    return table_of(
        ImportedFileRow,
        map(_counted_row, files),
        "tourney/imported-battles@1",
        "Battles",
        notes=notes,
        facts={
            "judges": sorted(set[str]().union(*(taken.judges for taken in files))),
            "n_known": n_known,
            "n_unrated": sum(taken.unrated.total() for taken in files),
            "n_in_set": sum(n_in_set.values()),
        },
    )


def _counted_row(taken: BattleImport) -> ImportedFileRow:
    of = taken.file.of
    return ImportedFileRow(
        file=str(taken.file.path),
        name=taken.file.name,
        format=f"{of.name}@{of.mapping_version}",
        battles=taken.n_battles,
        entrants=len(taken.entrants),
        ties=taken.winners["tie"] + taken.winners["tie (bothbad)"],
        no_verdict=taken.winners["no verdict"],
        skipped=taken.n_left_out,
        judges=shortened(sorted(taken.judges)) or None,
    )


class AdapterRow(NamedTuple):
    """An adapter that was imported."""

    adapter: Shown[str]
    rank: Shown[int]
    source: Annotated[str, Column("From")]


def imported_table(out: Path, imported: Sequence[ImportedAdapter]) -> Table:
    """Return a row for each adapter, with its source."""
    return table_of(
        AdapterRow,
        (
            AdapterRow(adapter=adapter.name, rank=adapter.folder.rank, source=str(adapter.source))
            for adapter in imported
        ),
        "tourney/hydra-weights@1",
        f"Adapters in {out}",
        facts={"folder": str(out)},
    )


_Place: TypeAlias = tuple[str, str | None]  # a file, and an entrant


class ImportedResponsesRow(NamedTuple):
    """How many responses of an entrant were imported from a file."""

    file: Shown[str]
    entrant: Shown[str | None]
    responses: Shown[int]
    already_there: Shown[int]
    skipped: Shown[int]


def imported_responses_table(imported: ImportedResponses) -> Table:
    """Return a row for each file and entrant; bad lines count for the file alone."""
    new, known = _counts(imported.new), _counts(imported.known)
    skipped: Counter[_Place] = Counter((str(line.file), None) for line in imported.bad)
    return table_of(
        ImportedResponsesRow,
        (
            ImportedResponsesRow(
                *place, responses=new[place], already_there=known[place], skipped=skipped[place]
            )
            for place in sorted({*new, *known, *skipped}, key=str)
        ),
        "tourney/imported-responses@1",
        "Responses",
    )


def _counts(responses: Sequence[FoundResponse]) -> Counter[_Place]:
    return Counter(
        (str(response.file), str(response.response.entrant_id)) for response in responses
    )
