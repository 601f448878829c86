"""`tourney project elo`: Elo ratings, with any K, from the recorded verdicts."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer

from commands.cli.shared import options
from commands.cli.shared.reading import read_settled
from commands.cli.shared.selection import BATTLES, WRITTEN, selecting
from commands.cli.shared.views import show, view_of
from commands.cli.tables.elo import elo_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.parameters import elo_parameters
from ledger.events.ratings import TieRule
from projections.ratings.standings import standings


@selecting(*BATTLES, *WRITTEN)
def elo(
    ctx: typer.Context,
    k: Annotated[float | None, typer.Option(help="The largest rating change per match.")] = None,
    k_sweep: Annotated[
        str, typer.Option(help="Also rate with these values of K, such as 1,4,8,32.")
    ] = "",
    ties: Annotated[
        TieRule | None, typer.Option(help="drop: ties do not count; half: half a win for each.")
    ] = None,
    bootstraps: Annotated[
        int | None,
        typer.Option("--bootstraps", help="The number of bootstrap resamples; 0: no intervals."),
    ] = None,
    diff: options.Diff = None,
) -> None:
    """Compute Elo ratings. Options override the recorded settings.

    [elo] and TOURNEY_ELO_K change nothing here until the next `tourney run` or `tourney apply`.

    Example: tourney project elo --k 16
    """
    chosen = {"k": k, "k_sweep": numbers_of(k_sweep), "ties": ties, "bootstraps": bootstraps}
    show(ctx, view_of(read_settled, partial(_elo, chosen=chosen)), diff)


def _elo(source: JudgedTournament | SelectedSet, chosen: Mapping[str, object]) -> Table:
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
