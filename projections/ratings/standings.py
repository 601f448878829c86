"""Standings by Elo on one dimension, unrated entrants included, and head-to-head win rates."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from ledger.events.ratings import EloParameters
from ledger.identity import Dimension, EntrantId
from projections.battles.columns import Battles
from projections.battles.settled import settled_battles
from projections.intervals import Interval, known, wilson
from projections.ratings.elo import EloBootstrap, EloRatings, bootstrap, rate
from projections.tournament.settlement import FAILURES, Account, Settlement, account_of

FEWEST_PROMPTS: Final = 10
"""On which an entrant must be met to have an interval: on fewer K holds its rating in place."""


class Standing(NamedTuple):
    """One entrant's Elo rating; None if it has no battle that counts."""

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
    """Compute a dimension's standings from its settlements."""
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
    """Yield the rows of the entrants that have battles, in order of id."""
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
            lower=known(bounds[i, 0]),
            upper=known(bounds[i, 1]),
            order_sem=float(sem[i]),
            n_matches=int(n_matches[i]),
            n_prompts=int(n_prompts[i]),
        )


class WinRate(NamedTuple):
    """One pair of entrants on one dimension; a comes before b in the alphabet."""

    dimension: Dimension
    entrant_a: EntrantId
    entrant_b: EntrantId
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    missing: int  # failed or still pending

    @property
    def win_rate(self) -> float | None:
        """Return a's share of decided and tied pairs, ties as half; None if there are none."""
        n = self._n_counted
        return (self.a_wins + self.ties / 2) / n if n else None

    def interval(self, counted: Literal["pairs", "orders"] = "pairs") -> Interval | None:
        """Return Wilson's 95 % interval of a's share, a tie being one trial with half a success.

        Args:
            counted: What was counted; two orders are one trial, as they are not independent.
        """
        share, n_a_trial = self.win_rate, 2 if counted == "orders" else 1
        return None if share is None else wilson(share, self._n_counted / n_a_trial)

    @property
    def _n_counted(self) -> int:
        return self.a_wins + self.b_wins + self.ties


def win_rates(settlements: Iterable[Settlement]) -> tuple[WinRate, ...]:
    """Count outcomes by pair of entrants: dimensions in their order, then pairs by name."""
    counts: dict[tuple[Dimension, EntrantId, EntrantId], Counter[str]] = {}
    for settlement in settlements:
        pairing = settlement.pairing
        a, b = sorted((pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id))
        count = counts.setdefault((pairing.rubric.dimension, a, b), Counter())
        won: dict[EntrantId | None, str] = {a: "a", b: "b", None: settlement.status}
        count[won[settlement.winner]] += 1
    ordered = list(dict.fromkeys(key[0] for key in counts))
    keys = sorted(counts, key=lambda key: (ordered.index(key[0]), *key[1:]))
    return tuple(_win_rate(key, counts[key]) for key in keys)


def _win_rate(key: tuple[Dimension, EntrantId, EntrantId], count: Counter[str]) -> WinRate:
    return WinRate(
        *key,
        a_wins=count["a"],
        b_wins=count["b"],
        ties=count["tie"],
        inconsistent=count["inconsistent"],
        missing=count["pending"] + sum(count[reason] for reason in FAILURES),
    )
