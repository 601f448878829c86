"""`tourney status` of one tournament: what is done, and what remains to be done."""

from dataclasses import replace

import typer

from commands.cli.project.outcomes import progress_table
from commands.cli.shared.reading import read_verdicts
from commands.cli.shared.views import show, view_of
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import JudgedTournament
from projections.tournament.remaining import progress
from projections.tournament.settlement import account_of
from projections.tournament.waves import not_asked
from projections.verdicts.policies import MAJORITY, RECORDED


def show_progress(ctx: typer.Context) -> None:
    """Print the progress of the tournament that a command's options select."""
    show(ctx, view_of(read_verdicts, _progress))


def _progress(source: JudgedTournament) -> Table:
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["progress is counted for one judge: choose it with --judge"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    found = progress(source.state, prompts, source.judge)
    if source.rule != RECORDED:
        accounts = ((name, account_of(group)) for name, group in source.settlements.items())
        found = replace(found, accounts=tuple(accounts))
    return progress_table(found, source.judge, not_asked(source.state, source.judge))
