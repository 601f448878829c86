"""Reading rows in a format, and what is asked of the result."""

from pathlib import Path

from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.files import records_of
from commands.importing.formats.rows import BadRow, Fields, Record
from ledger.events.imports import ImportedBattle


def read_rows(name: str, *rows: Fields) -> list[ImportedBattle | BadRow]:
    """Read rows in a format, as if each were a line."""
    return [*FORMATS[name].read(Record(line, row) for line, row in enumerate(rows, start=1))]


def battles_of_rows(name: str, *rows: Fields) -> list[ImportedBattle]:
    """Return the battles of rows, all of which are such."""
    read = read_rows(name, *rows)
    assert [row for row in read if isinstance(row, BadRow)] == []
    return [row for row in read if isinstance(row, ImportedBattle)]


def why_not(name: str, row: Fields) -> str:
    """Return why a row is no battle."""
    (bad,) = read_rows(name, row)
    assert isinstance(bad, BadRow)
    return bad.why


def read_text(name: str, path: Path, text: str) -> list[ImportedBattle | BadRow]:
    """Write a file and read it in a format."""
    path.write_text(text, encoding="utf-8")
    return read_file(name, path)


def read_file(name: str, path: Path) -> list[ImportedBattle | BadRow]:
    """Read a file in a format."""
    return [*FORMATS[name].read(records_of(path, FORMATS[name]))]


def mirrored(row: ImportedBattle) -> ImportedBattle:
    """Return the battle with its two entrants, and all that is said of them, exchanged."""
    match row.winner:
        case "model_a":
            winner = row._replace(winner="model_b")
        case "model_b":
            winner = row._replace(winner="model_a")
        case _:
            winner = row
    pref = None if row.pref is None else 1 - row.pref
    return winner._replace(model_a=row.model_b, model_b=row.model_a, pref=pref)
