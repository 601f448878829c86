"""`tourney project winrates`, `matches`, `responses` and `spend`."""

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Annotated

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.reading import read_outcomes, read_settled, read_verdicts
from commands.cli.shared.selection import BATTLES, JUDGED, WRITTEN, selecting
from commands.cli.shared.views import notes_of, show, view_of
from commands.cli.tables.outcomes import (
    matches_table,
    responses_table,
    winrates_table,
)
from commands.cli.tables.spending import spend_table
from commands.cli.tables.table import Table
from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.resolve import unknown
from commands.reading.results import bills_of
from ledger.identity import Json
from projections.ratings.standings import win_rates
from projections.tournament.compared import OutcomeKind, kind_of
from projections.tournament.requests import endpoint_spend
from projections.tournament.settlement import Compared
from projections.tournament.spend import spend_of


@selecting(*BATTLES, *WRITTEN)
def matches(
    ctx: typer.Context,
    prompt: Annotated[
        str | None, typer.Option(autocompletion=completion.prompts, help="Only this prompt.")
    ] = None,
    entrant: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=completion.entrants,
            help="Only matches of this entrant. Give it twice for two entrants' matches.",
        ),
    ] = None,
    outcome: Annotated[
        OutcomeKind | None, typer.Option(help="Only matches with this outcome.")
    ] = None,
) -> None:
    """List every pair of responses with its outcome.

    Example: tourney project matches --entrant full_poe --outcome inconsistent
    """

    def table_of(source: OutcomeSource) -> Table:
        every = chain.from_iterable(source.compared.values())
        listed = chosen_matches(every, prompt=prompt, entrants=entrant or (), outcome=outcome)
        facts: dict[str, Json] = {"judge": source.judge_id}
        return matches_table(listed, notes=notes_of(source), facts=facts)

    show(ctx, view_of(read_outcomes, table_of))


def chosen_matches(
    every: Iterable[Compared],
    *,
    prompt: str | None = None,
    entrants: Collection[str] = (),
    outcome: OutcomeKind | None = None,
) -> list[Compared]:
    """Return the matches of a prompt, of all named entrants, and with an outcome; None: all.

    Raises:
        ConfigurationError: There is no such prompt or entrant.
    """
    compared, names = [*every], {*entrants}
    prompts = {match.prompt_id: None for match in compared if match.prompt_id is not None}
    known = {name: None for match in compared for name in (match.entrant_a, match.entrant_b)}
    if prompt is not None and prompt not in prompts:
        raise unknown("--prompt", prompt, [*prompts])
    for name in names - known.keys():
        raise unknown("--entrant", name, [*known])
    return [
        match
        for match in compared
        if prompt in {None, match.prompt_id}
        and names <= {match.entrant_a, match.entrant_b}
        and outcome in {None, kind_of(match.status)}
    ]


@selecting(*BATTLES, *WRITTEN)
def winrates(
    ctx: typer.Context,
    diff: options.Diff = None,
) -> None:
    """Count wins, losses and ties by pair of entrants.

    Example: tourney project winrates --format csv
    """
    show(ctx, view_of(read_settled, _winrates), diff)


def _winrates(source: OutcomeSource) -> Table:
    kinds = (battles.counted for battles in source.columns.values() if len(battles))
    return winrates_table(
        win_rates(source.columns),
        counted=next(kinds, "pairs"),
        notes=notes_of(source),
        facts={"judge": source.judge_id},
    )


@selecting(*JUDGED, *WRITTEN)
def responses(
    ctx: typer.Context,
) -> None:
    """List every response.

    Example: tourney project responses --format jsonl
    """
    show(ctx, view_of(read_verdicts, lambda source: responses_table(source.state)))


@selecting(*JUDGED, *WRITTEN)
def spend(
    ctx: typer.Context,
) -> None:
    """Show what was spent, by judge, dimension and day.

    Example: tourney project spend --json
    """
    show(ctx, view_of(read_verdicts, _spent))


def _spent(source: JudgedTournament) -> Table:
    spent = source.folded(spend_of(source.state.stream))
    is_narrowed = source.named_judge is not None or source.named_dimension is not None
    served = () if is_narrowed else endpoint_spend(spent.entrants)
    return spend_table([*bills_of(source, spent)], served)
