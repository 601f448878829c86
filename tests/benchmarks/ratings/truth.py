"""How often intervals hold the truth where a judge favours an entrant and people vote on some.

The judge adds 0.8 to one entrant's log odds; people vote on 120 of 858 battles, drawn at random.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.prediction_powered import rate_with_votes
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Demand, Row, between, stated
from tests.support.builders.votes import election, true_ratings

_N_ELECTIONS: Final = 400  # of the seeds 0, 1, 2 ...
_PLAIN: Final = BradleyTerryParameters()


def measure(bench: Bench) -> Iterator[Row]:
    """Rate each election by the judge alone, by the votes alone, and by both."""
    drawn = [election(seed) for seed in range(bench.scaled(_N_ELECTIONS, at_least=2))]
    rated: Mapping[str, Sequence[BradleyTerryRatings]] = {
        "the judge alone": [rate(each.voted.judged, _PLAIN) for each in drawn],
        "120 votes alone": [rate(each.votes, _PLAIN) for each in drawn],
        "the judge corrected by the votes": [
            rate_with_votes(each.voted, _PLAIN).ratings for each in drawn
        ],
    }
    demands: Mapping[str, Demand] = {"the judge corrected by the votes": between(0.93, 0.97)}
    for name, each in rated.items():
        yield _row(name, each, demands.get(name))


def _row(name: str, rated: Sequence[BradleyTerryRatings], asked: Demand | None) -> Row:
    true = true_ratings()
    share = float(np.mean([(each.lower <= true) & (true <= each.upper) for each in rated]))
    width = float(np.mean([each.upper - each.lower for each in rated]))
    figure = f"{share:.1%}, {width:.0f} Elo wide"
    return stated(f"95 % intervals that hold the truth: {name}", figure, share, asked)
