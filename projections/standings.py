"""Entrants by Elo rating on one dimension, with those marked that have nothing to be rated on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import EloParameters
from ledger.identity import Dimension, EntrantId
from projections.battles import Battles
from projections.elo import EloRatings, rate
from projections.elo_bootstrap import EloBootstrap, bootstrap
from projections.settled_battles import settled_battles
from projections.settlement import Account, Settlement, account_of

FEWEST_PROMPTS: Final = 10
"""On which an entrant must be met to have an interval: on fewer K holds its rating in place."""


class Standing(NamedTuple):
    """One entrant's place; rating is None when no match of it counts."""

    entrant_id: EntrantId
    rating: float | None
    lower: float | None  # of the 95 % interval by resampling prompts; None: there is none
    upper: float | None
    order_sem: float | None  # dependence on the order of play, not uncertainty
    n_matches: int
    n_prompts: int  # on which it met another


@dataclass(frozen=True)
class Standings:
    """A dimension's entrants, best first, then the unrated in roster order."""

    dimension: Dimension
    k: float
    rows: tuple[Standing, ...]
    ratings: EloRatings
    bootstrap: EloBootstrap | None
    sweep: tuple[tuple[float, EloRatings], ...]
    account: Account


def standings(
    dimension: Dimension,
    settlements: Sequence[Settlement],
    roster: Sequence[EntrantId],
    parameters: EloParameters,
) -> Standings:
    """Rate a dimension's entrants from what became of its pairings."""
    battles = settled_battles(settlements, ties=parameters.ties)
    by_k = rate(battles, parameters, tuple(dict.fromkeys((parameters.k, *parameters.k_sweep))))
    ratings = by_k[parameters.k]
    resampled = bootstrap(battles, parameters, k=parameters.k)
    rated = sorted(_rated(battles, ratings, resampled), key=lambda row: -(row.rating or 0.0))
    unrated = [name for name in roster if name not in battles.entrants]
    return Standings(
        dimension=dimension,
        k=parameters.k,
        rows=(*rated, *(Standing(name, None, None, None, None, 0, 0) for name in unrated)),
        ratings=ratings,
        bootstrap=resampled,
        sweep=tuple((k, by_k[k]) for k in parameters.k_sweep),
        account=account_of(settlements),
    )


def _rated(
    battles: Battles, ratings: EloRatings, resampled: EloBootstrap | None
) -> Iterator[Standing]:
    """Yield the rows of those that played, in order of id."""
    means = ratings.mean()
    bounds = np.full((len(means), 2), np.nan) if resampled is None else resampled.interval(means)
    met = np.append(battles.a, battles.b)
    n_matches = np.bincount(met, minlength=len(means))
    has_met_on = np.zeros((len(means), battles.cluster.max(initial=-1) + 1), dtype=bool)
    has_met_on[met, np.tile(battles.cluster, 2)] = True
    n_prompts = has_met_on.sum(axis=1)
    bounds[n_prompts < FEWEST_PROMPTS] = np.nan
    sem = ratings.order_sem()
    for i, name in enumerate(ratings.entrants):
        yield Standing(
            EntrantId(name),
            rating=float(means[i]),
            lower=_known(bounds[i, 0]),
            upper=_known(bounds[i, 1]),
            order_sem=float(sem[i]),
            n_matches=int(n_matches[i]),
            n_prompts=int(n_prompts[i]),
        )


def _known(bound: float) -> float | None:
    return None if np.isnan(bound) else float(bound)
