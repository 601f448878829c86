"""`tourney prices`: what judges cost, and since when that is known."""

import os
from datetime import UTC, datetime

from commands.cli.options import DEFAULT_CONFIG, ConfigOption, FormatOption, JsonOption
from commands.cli.streams import write
from commands.priced import prices_of
from commands.prices import price_table
from commands.render import Format
from commands.settings_file import read_settings
from commands.tables.prices import prices_table


def prices(
    config: ConfigOption = DEFAULT_CONFIG,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Print what judges cost, from which table of what date. Example: tourney prices --json."""
    if config == DEFAULT_CONFIG and not config.exists():
        table = price_table()
    else:
        table = prices_of(read_settings(config, os.environ), config.parent)
    today = datetime.now(UTC).date()
    write(prices_table(table, today), output_format, as_json=as_json)
