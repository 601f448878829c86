"""`tourney project responses` and `progress`: what is there, and what is owed."""

from dataclasses import replace

from commands.cli.asked import Reading
from commands.cli.reading import reading, reading_verdicts
from commands.errors import ConfigurationError
from commands.tables.responses import progress_table, responses_table
from commands.tables.table import Table
from projections.tournament.progress import progress as progress_of
from projections.tournament.settlement import account_of
from projections.verdicts.policies import MAJORITY, RECORDED


@reading
def responses(source: Reading) -> Table:
    """List every response. Example: tourney project responses --format jsonl."""
    return responses_table(source.state)


@reading_verdicts
def progress(source: Reading) -> Table:
    """Show what is there and what is owed. Example: tourney project progress."""
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["progress is that of one judge; choose it by --judge"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    found = progress_of(source.state, prompts, source.judge)
    if source.rule != RECORDED:
        accounts = ((name, account_of(group)) for name, group in source.settlements.items())
        found = replace(found, accounts=tuple(accounts))
    return progress_table(found, source.judge)
