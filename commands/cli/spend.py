"""`tourney project spend`: what was paid."""

from commands.cli.asked import Reading
from commands.cli.reading import reading
from commands.tables.spend import spend_table
from commands.tables.table import Table
from projections.spend import spend_of


@reading
def spend(source: Reading) -> Table:
    """Show what was paid, to whom, for what and when. Example: tourney project spend --json."""
    spent = source.folded(spend_of(source.state.stream))
    chosen = (
        key
        for key in spent.bills
        if source.named_judge in {None, key.judge}
        and source.named_dimension in {None, key.dimension}
    )
    return spend_table(spent, chosen)
