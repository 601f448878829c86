"""`tourney project spend`: what was paid."""

import os
from importlib import import_module
from pathlib import Path

from commands.cli.asked import Asked, Reading, read_verdicts
from commands.cli.place import kept
from commands.cli.reading import answering_by_own_rule, introduced
from commands.lookup import own_prices
from commands.prices import PriceTable, price_table
from commands.served_spend import ServedSpend, served_spend
from commands.tables.spend import spend_table
from commands.tables.table import Table
from projections.tournament.spend import spend_of


@answering_by_own_rule
def spend(asked: Asked) -> Table:
    """Show what was paid, to whom, for what and when. Example: tourney project spend --json."""
    source = read_verdicts(asked)
    spent = source.folded(spend_of(source.state.stream))
    chosen = (
        key
        for key in spent.bills
        if source.named_judge in {None, key.judge}
        and source.named_dimension in {None, key.dimension}
    )
    return introduced(spend_table(spent, chosen, _served(source, asked.config)), source)


def _served(source: Reading, config: Path) -> tuple[ServedSpend, ...]:
    """Return what entrants behind endpoints took, on behalf of every judge and dimension."""
    is_narrowed = source.named_judge is not None or source.named_dimension is not None
    entrants = source.state.entrants.values()
    if is_narrowed or not any(each.loader == "endpoint" for each in entrants):
        return ()
    # It takes what evaluations are made of, for which no other reading waits.
    reading = import_module("commands.cli.served_reading")
    return served_spend(reading.used_at_servers(source), _prices(config))


def _prices(config: Path) -> PriceTable:
    """Return the prices of the settings, or the shipped ones where none are there."""
    return price_table(own_prices(config, os.environ) if kept(config) else None)
