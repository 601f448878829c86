"""`tourney project agreement`: what habits judges have, and how far they agree."""

from commands.cli.asked import Reading
from commands.cli.reading import reading_verdicts
from commands.errors import ConfigurationError
from commands.tables.agreement import agreement_table
from commands.tables.table import Table
from projections.reliability.agreement import agreement as agreement_of
from projections.verdicts.policies import MAJORITY


@reading_verdicts
def agreement(source: Reading) -> Table:
    """Show each judge's habits and how judges agree. Example: tourney project agreement --json."""
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["agreement compares the judges of the panel: no majority of it"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    measures = agreement_of(source.state, prompts, source.state.panel, source.rule)
    named = source.named_judge
    return agreement_table(each for each in measures if named is None or named in each.judges)
