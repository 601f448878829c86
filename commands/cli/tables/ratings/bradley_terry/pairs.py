"""Differences of Bradley-Terry ratings, all pairs compared at once, as a table."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from commands.cli.tables.table import Table, table_of
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.intervals import Floats
from projections.ratings.bradley_terry.comparisons import Adjustment, p_better, pairs
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.bradley_terry.rate import BradleyTerryRatings
from projections.results.ratings import BradleyTerryPair

_TOGETHER: Final = "Low, high and p hold for all pairs at once"
_METHOD: Final[Mapping[Adjustment, str]] = {
    "max-t": "single-step max-t, simulated from the covariance of all ratings with seed {seed}",
    "holm": "p by Holm's step-down method, intervals by Bonferroni's",
}


def pairs_table(
    boards: Iterable[Leaderboard],
    parameters: BradleyTerryParameters,
    adjustment: Adjustment,
    *,
    notes: Iterable[str] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Return a row for each pair of entrants of a group, the largest difference first."""
    boards, percent = tuple(boards), f"{100 * parameters.level:g} %"
    return table_of(
        BradleyTerryPair,
        (
            BradleyTerryPair(dimension=board.name, **pair._asdict())
            for board in boards
            for pair in pairs(board.ratings, adjustment)
        ),
        "tourney/bt-pairs@1",
        "Bradley-Terry, differences of all pairs",
        headings={"low": f"{percent} low", "high": f"{percent} high"},
        notes=(*notes, f"{_TOGETHER}: {_METHOD[adjustment].format(seed=parameters.seed)}."),
        facts={
            "parameters": parameters.fields,
            "adjustment": adjustment,
            "fits": {board.name: _matrices(board.ratings) for board in boards},
            **(facts or {}),
        },
    )


def _matrices(ratings: BradleyTerryRatings) -> Json:
    """Return what is known of all pairs, (n, n) each; entrants in alphabetical order."""
    return {
        "entrants": list(ratings.entrants),
        "covariance": known_values(ratings.covariance),
        "p_better": known_values(p_better(ratings)),
    }


def known_values(values: Floats) -> Json:
    """Return numbers of any shape as lists, with null for those that are not finite."""
    known = values.astype(object)
    known[~np.isfinite(values)] = None
    numbers: Json = known.tolist()
    return numbers
