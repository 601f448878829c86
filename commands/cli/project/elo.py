"""`tourney project elo`: ratings under any K, from what is on record."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from commands.cli.shared.command import reading_ratings
from commands.cli.shared.options import overruled, require_resamples
from commands.cli.shared.reading import Reading
from commands.cli.tables.elo import elo_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from ledger.events.ratings import EloParameters, TieRule
from projections.ratings.elo import BOOTSTRAPS, LEVEL
from projections.ratings.standings import standings
from projections.tournament.state import Tournament


@reading_ratings
def elo(
    source: Reading,
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
    }
    parameters = elo_parameters(source.state, chosen, k_sweep)
    roster = [entrant.entrant_id for entrant in source.state.roster]
    rated = [
        standings(dimension, group, roster, parameters)
        for dimension, group in source.settlements.items()
    ]
    return elo_table(rated, parameters, *source.judges)


def elo_parameters(state: Tournament, chosen: Mapping[str, object], k_sweep: str) -> EloParameters:
    """Return the recorded settings with what was chosen in their place.

    Not those at hand: who reads a ledger alone, or as of last week, gets the same numbers. A
    tournament that was opened before there were intervals has them now.

    Raises:
        ConfigurationError: An option is no number, or out of range, or asks for too few resamples.
    """
    configured = json.loads(state.opening.configuration)["elo"] if state.opening else {}
    by = {**chosen, "k_sweep": _numbers(k_sweep)}
    parameters = overruled(EloParameters, {"bootstraps": BOOTSTRAPS, **configured}, by=by)
    if parameters.bootstraps and chosen.get("bootstraps") is not None:
        require_resamples("--bootstraps", parameters.bootstraps, level=LEVEL)
    return parameters


def _numbers(k_sweep: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in k_sweep.split(",") if part.strip())
    except ValueError as error:
        raise ConfigurationError([f"--k-sweep {k_sweep!r}: numbers with commas between"]) from error
