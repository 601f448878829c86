"""`tourney project winrates`, `matches`, `responses`, `progress` and `spend`."""

from dataclasses import replace
from itertools import chain
from typing import Annotated, NamedTuple

import typer

from commands.cli.shared import completion
from commands.cli.shared.reading import Selection, notes_of, read_verdicts
from commands.cli.shared.views import (
    battles_view,
    outcomes_view,
    ratings_view,
    table_command_without_rule,
    tournament_view,
    with_source,
)
from commands.cli.tables import outcomes as tables
from commands.cli.tables.spending import spend_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament, OutcomeSource
from commands.runs.reading.results import bills_of
from commands.runs.resolve import unknown
from projections.ratings.standings import win_rates
from projections.tournament.compared import Compared, OutcomeKind, account_of, kind_of
from projections.tournament.remaining import progress as progress_of
from projections.tournament.requests import endpoint_spend
from projections.tournament.spend import spend_of
from projections.verdicts.policies import MAJORITY, RECORDED


class MatchFilters(NamedTuple):
    """Which matches are listed; None: all."""

    prompt: Annotated[
        str | None, typer.Option(autocompletion=completion.prompts, help="Only this prompt.")
    ] = None
    entrant: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=completion.entrants,
            help="Only matches of this entrant. Give it twice for two entrants' matches.",
        ),
    ] = None
    outcome: Annotated[OutcomeKind | None, typer.Option(help="Only matches with this outcome.")] = (
        None
    )

    def chosen(self, source: OutcomeSource) -> list[Compared]:
        """Return the matches that are listed.

        Raises:
            ConfigurationError: There is no such prompt or entrant.
        """
        compared = [*chain.from_iterable(source.compared.values())]
        names = {*(self.entrant or ())}
        prompts = {each.prompt_id: None for each in compared if each.prompt_id is not None}
        entrants = {name: None for each in compared for name in (each.entrant_a, each.entrant_b)}
        if self.prompt is not None and self.prompt not in prompts:
            raise unknown("--prompt", self.prompt, [*prompts])
        for name in names - entrants.keys():
            raise unknown("--entrant", name, [*entrants])
        return [
            each
            for each in compared
            if self.prompt in {None, each.prompt_id}
            and names <= {each.entrant_a, each.entrant_b}
            and self.outcome in {None, kind_of(each.status)}
        ]


@battles_view
def matches(source: OutcomeSource, filters: MatchFilters) -> Table:
    """List every pair of responses with its outcome.

    Example: tourney project matches --entrant full_poe --outcome inconsistent
    """
    return tables.matches_table(
        filters.chosen(source), notes=notes_of(source), facts={"judge": source.judge_id}
    )


@ratings_view
def winrates(source: OutcomeSource) -> Table:
    """Count wins, losses and ties by pair of entrants.

    Example: tourney project winrates --format csv
    """
    compared = [each for group in source.compared.values() for each in group]
    counted = account_of(compared).counted
    return tables.winrates_table(
        win_rates(compared),
        counted=counted,
        notes=notes_of(source),
        facts={"judge": source.judge_id},
    )


@tournament_view
def responses(source: JudgedTournament) -> Table:
    """List every response.

    Example: tourney project responses --format jsonl
    """
    return tables.responses_table(source.state)


@outcomes_view
def progress(source: JudgedTournament) -> Table:
    """Show what is done and what remains to be done.

    Example: tourney project progress
    """
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["progress is counted for one judge: choose it with --judge"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    found = progress_of(source.state, prompts, source.judge)
    if source.rule != RECORDED:
        accounts = ((name, account_of(group)) for name, group in source.settlements.items())
        found = replace(found, accounts=tuple(accounts))
    return tables.progress_table(found, source.judge)


@table_command_without_rule
def spend(selection: Selection) -> Table:
    """Show what was spent, by judge, dimension and day.

    Example: tourney project spend --json
    """
    source = read_verdicts(selection)
    spent = source.folded(spend_of(source.state.stream))
    is_narrowed = source.named_judge is not None or source.named_dimension is not None
    served = () if is_narrowed else endpoint_spend(spent.entrants)
    return with_source(spend_table([*bills_of(source, spent)], served), source)
