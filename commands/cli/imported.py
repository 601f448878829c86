"""`tourney project imported`: what others say, beside ours."""

from commands.cli.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
)
from commands.cli.place import ledger_path, position_of
from commands.cli.streams import write
from commands.render import Format
from commands.tables.battles import imported_ratings_table
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_RATINGS
from projections.fold import fold


def imported(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    as_of: AsOfOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """List the ratings of others that were imported. Example: tourney project imported."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        until = position_of(opened, as_of)
        found = fold(IMPORTED_RATINGS, opened.read(until=until, types={"RatingsImported"}))
    write(imported_ratings_table(found.newest), output_format, as_json=as_json)
