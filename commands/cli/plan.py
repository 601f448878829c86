"""`tourney plan`: what is owed, before anything is done about it."""

from typing import Annotated

import typer

from commands.cli.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
    ModeOption,
)
from commands.cli.streams import write
from commands.cli.workshop import Workshop, workshop
from commands.plan import plan_responses, plan_verdicts, rehearse
from commands.render import Format
from commands.run import selected_prompts
from commands.tables.plan import owed_responses_table, owed_verdicts_table
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament import Tournament, tournament_of

app = typer.Typer(no_args_is_help=True)

ExitCodeOption = Annotated[
    bool, typer.Option("--exit-code", help="Exit 9 if anything is owed, 0 if not.")
]
WORK_IS_OWED = 9


@app.command()
def generate(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    mode: ModeOption = "headline",
    exit_code: ExitCodeOption = False,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Count the responses that are owed. Example: tourney plan generate --mode pilot."""
    place = workshop(config, ledger)
    state = _rehearsed(place)
    rows = plan_responses(state, selected_prompts(place.opening.bank, place.settings, mode))
    write(owed_responses_table(rows), output_format, as_json=as_json)
    if exit_code and any(row.n_responses for row in rows):
        raise typer.Exit(WORK_IS_OWED)


@app.command()
def judge(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    mode: ModeOption = "headline",
    exit_code: ExitCodeOption = False,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Count the judge queries that are owed. Example: tourney plan judge --json."""
    place = workshop(config, ledger)
    state = _rehearsed(place)
    rows = plan_verdicts(
        state,
        selected_prompts(place.opening.bank, place.settings, mode),
        state.panel[0],
        retries=place.settings.judge.retries,
    )
    write(owed_verdicts_table(rows), output_format, as_json=as_json)
    if exit_code and any(row.n_queries or row.n_waiting for row in rows):
        raise typer.Exit(WORK_IS_OWED)


def _rehearsed(place: Workshop) -> Tournament:
    """Fold what is there, and open the tournament in memory only."""
    projection = tournament_of(place.stream)
    if not place.ledger.exists():
        return rehearse(projection.initial, place.opening)
    with Ledger.read_only(place.ledger) as ledger:
        return rehearse(fold(projection, ledger.read()), place.opening)
