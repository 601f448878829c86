"""`tourney project elo`: Elo ratings, with any K, from the recorded verdicts."""

from typing import Annotated, NamedTuple

import typer

from commands.cli.shared.views import ratings_view
from commands.cli.tables.ratings.elo import elo_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import OutcomeSource
from commands.runs.parameters import elo_parameters
from ledger.events.ratings import TieRule
from projections.ratings.standings import standings


class EloOptions(NamedTuple):
    """How Elo ratings are computed; None: as recorded."""

    k: Annotated[float | None, typer.Option(help="The largest rating change per match.")] = None
    k_sweep: Annotated[
        str, typer.Option(help="Also rate with these values of K, such as 1,4,8,32.")
    ] = ""
    ties: Annotated[
        TieRule | None, typer.Option(help="drop: ties do not count; half: half a win for each.")
    ] = None
    bootstraps: Annotated[
        int | None,
        typer.Option("--bootstraps", help="The number of bootstrap resamples; 0: no intervals."),
    ] = None


@ratings_view
def elo(source: OutcomeSource, options: EloOptions) -> Table:
    """Compute Elo ratings. Options override the recorded settings.

    [elo] and TOURNEY_ELO_K change nothing here until the next `tourney run` or `tourney apply`.

    Example: tourney project elo --k 16
    """
    chosen = {**options._asdict(), "k_sweep": numbers_of(options.k_sweep)}
    parameters = elo_parameters(source.settings("elo"), chosen)
    rated = [
        standings(dimension, battles, source.roster, parameters)
        for dimension, battles in source.columns.items()
    ]
    return elo_table(rated, parameters, *source.judges)


def numbers_of(k_sweep: str) -> tuple[float, ...]:
    """Parse --k-sweep.

    Raises:
        ConfigurationError: A part is not a number.
    """
    try:
        return tuple(float(part) for part in k_sweep.split(",") if part.strip())
    except ValueError as error:
        raise ConfigurationError([f"--k-sweep {k_sweep!r}: write it as 1,4,8,32"]) from error
