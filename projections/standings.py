"""Entrants by Elo rating on one dimension, with those marked that have nothing to be rated on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from ledger.events.ratings import EloParameters
from ledger.identity import Dimension, EntrantId
from projections.elo import EloRatings, Game, rate
from projections.settlement import Account, Settlement, account_of

_SCORES: Final[Mapping[str, float]] = MappingProxyType({"a": 1.0, "b": 0.0, "tie": 0.5})


class Standing(NamedTuple):
    """One entrant's place; rating is None when no match of it counts."""

    entrant_id: EntrantId
    rating: float | None
    order_sem: float | None  # dependence on the order of play, not uncertainty
    n_matches: int


@dataclass(frozen=True)
class Standings:
    """A dimension's entrants, best first, then the unrated in roster order."""

    dimension: Dimension
    k: float
    rows: tuple[Standing, ...]
    ratings: EloRatings
    sweep: tuple[tuple[float, EloRatings], ...]
    account: Account


def standings(
    dimension: Dimension,
    settlements: Sequence[Settlement],
    roster: Sequence[EntrantId],
    parameters: EloParameters,
) -> Standings:
    """Rate a dimension's entrants from what became of its pairings."""
    matches = games(settlements, ties=parameters.ties)
    by_k = {k: rate(matches, parameters, k=k) for k in {parameters.k, *parameters.k_sweep}}
    ratings = by_k[parameters.k]
    return Standings(
        dimension=dimension,
        k=parameters.k,
        rows=_rows(ratings, matches, roster),
        ratings=ratings,
        sweep=tuple((k, by_k[k]) for k in parameters.k_sweep),
        account=account_of(settlements),
    )


def games(settlements: Iterable[Settlement], *, ties: str) -> tuple[Game, ...]:
    """Return what counts for a rating: decided matches, and ties if they count half."""
    counted = {"a", "b"} | ({"tie"} if ties == "half" else set())
    return tuple(
        Game(
            settlement.pairing.a.entrant.entrant_id,
            settlement.pairing.b.entrant.entrant_id,
            _SCORES[settlement.status],
        )
        for settlement in settlements
        if settlement.status in counted
    )


def _rows(
    ratings: EloRatings, matches: Sequence[Game], roster: Sequence[EntrantId]
) -> tuple[Standing, ...]:
    n_matches = {
        entrant: sum(entrant in {match.a, match.b} for match in matches) for entrant in roster
    }
    columns = zip(ratings.entrants, ratings.mean(), ratings.order_sem(), strict=True)
    rated = [
        Standing(entrant, float(mean), float(sem), n_matches[entrant])
        for entrant, mean, sem in columns
    ]
    unrated = [Standing(entrant, None, None, 0) for entrant in roster if not n_matches[entrant]]
    return (*sorted(rated, key=lambda row: -(row.rating or 0.0)), *unrated)
