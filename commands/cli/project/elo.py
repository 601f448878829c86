"""`tourney project elo`: ratings under any K, from what is on record."""

from typing import Annotated

import typer

from commands.cli.shared.command import reading_ratings
from commands.cli.tables.elo import elo_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import elo_parameters
from ledger.events.ratings import TieRule
from projections.ratings.standings import standings


@reading_ratings
def elo(
    source: JudgedTournament,
    k: Annotated[float | None, typer.Option("--k", help="Largest step of one match.")] = None,
    k_sweep: Annotated[
        str, typer.Option("--k-sweep", help="Further K to show beside it, as 1,4,8,32.")
    ] = "",
    permutations: Annotated[
        int | None, typer.Option("--permutations", help="Orders of play to average over.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the orders of play.")] = None,
    initial_rating: Annotated[
        float | None, typer.Option("--initial-rating", help="Where every entrant starts.")
    ] = None,
    ties: Annotated[
        TieRule | None,
        typer.Option("--ties", help="drop: a tie counts nothing; half: half a win for each."),
    ] = None,
    bootstraps: Annotated[
        int | None,
        typer.Option("--bootstraps", help="Resamples of the prompts, for intervals; 0: none."),
    ] = None,
) -> Table:
    """Rate by Elo, by the recorded settings but for options. Example: tourney project elo --k 16.

    `tourney run` and `tourney apply` record them: until then [elo] and TOURNEY_ELO_K change nothing
    here.
    """
    chosen = {
        "k": k,
        "permutations": permutations,
        "seed": seed,
        "initial_rating": initial_rating,
        "ties": ties,
        "bootstraps": bootstraps,
        "k_sweep": numbers_of(k_sweep),
    }
    parameters = elo_parameters(source.state, chosen)
    rated = [
        standings(dimension, group, source.roster, parameters)
        for dimension, group in source.settlements.items()
    ]
    return elo_table(rated, parameters, *source.judges)


def numbers_of(k_sweep: str) -> tuple[float, ...]:
    """Return the numbers that --k-sweep lists.

    Raises:
        ConfigurationError: It lists something else.
    """
    try:
        return tuple(float(part) for part in k_sweep.split(",") if part.strip())
    except ValueError as error:
        raise ConfigurationError([f"--k-sweep {k_sweep!r}: numbers with commas between"]) from error
