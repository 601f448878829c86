"""Standings by Elo on one dimension, unrated entrants included, and head-to-head win rates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters, TieRule
from ledger.identity import Dimension
from projections.battles.columns import CODES, STATUSES, Battles
from projections.intervals import Estimate, Floats, RatioTerms, estimate_ratio, known
from projections.ratings.bradley_terry.evidence import components_of
from projections.ratings.elo.rate import EloRatings, prompts_met, rate
from projections.ratings.elo.uncertainty import EloBootstrap, uncertainty
from projections.results.ratings import EloRow, WinRateRow
from projections.tournament.compared import (
    FAILURES,
    IDENTICAL,
    OPPOSITE,
    TIE_BESIDE_WIN,
    Account,
)

MANY_TIES: Final = 0.2
"""The share of ties above which ratings are computed both with and without them."""

TIES: Final[Mapping[TieRule, str]] = {"drop": "Ties dropped", "half": "Ties as half"}
"""How a column of ratings under a rule for ties is headed."""

WHY_DROPPED: Final = "Ties are dropped by default only because the published engine drops them."


class OtherTies(NamedTuple):
    """The ratings under the other rule for ties than the one that was asked for."""

    ties: TieRule
    ratings: Mapping[str, float]  # by entrant


@dataclass(frozen=True)
class Standings:
    """The entrants on a dimension or in a set, best first, then the unrated in roster order."""

    dimension: Dimension
    k: float
    ties: TieRule
    rows: tuple[EloRow, ...]
    ratings: EloRatings
    bootstrap: EloBootstrap | None
    sweep: tuple[tuple[float, EloRatings], ...]
    account: Account
    other_ties: OtherTies | None  # None: there are few ties
    n_prompts: Mapping[str, int]  # on which a rated entrant met another
    groups: tuple[tuple[str, ...], ...] = ()  # of rated entrants that met, perhaps through others

    @property
    def ties_note(self) -> str | None:
        """What becomes of the ties, where they are dropped; None if there are none."""
        account = self.account
        if self.ties == "half" or not account.tie:
            return None
        verb = "is" if account.tie == 1 else "are"
        effect = ", so ratings lie further apart than with ties as half" if account.decided else ""
        counted = f"{account.tie:,} {'tie' if account.tie == 1 else 'ties'}"
        return (
            f"{counted} ({account.tied_share:.0%} of decided and tied {account.counted}) {verb}"
            f" dropped{effect}. {WHY_DROPPED}"
        )


def standings(
    dimension: Dimension, compared: Battles, roster: Sequence[str], parameters: EloParameters
) -> Standings:
    """Compute the standings on a dimension, or in an imported set.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    battles = compared.by_outcome(parameters.ties)
    by_k = rate(battles, parameters, [*dict.fromkeys((parameters.k, *parameters.k_sweep))])
    ratings = by_k[parameters.k]
    n_judged = compared.n_judged_prompts
    resampled = uncertainty(battles, ratings, parameters, n_prompts=n_judged)
    n_prompts = prompts_met(battles)
    rows = _rated(dimension, battles, ratings, resampled, n_prompts)
    rated = sorted(rows, key=lambda row: -(row.rating or 0.0))
    unrated = [name for name in roster if name not in battles.entrants]
    return Standings(
        dimension=dimension,
        k=parameters.k,
        ties=parameters.ties,
        rows=(*rated, *(EloRow(dimension, name) for name in unrated)),
        ratings=ratings,
        bootstrap=resampled,
        sweep=tuple((k, by_k[k]) for k in parameters.k_sweep),
        account=compared.account,
        other_ties=_other_ties(compared, parameters),
        n_prompts=dict(zip(ratings.entrants, n_prompts.tolist(), strict=True)),
        groups=_groups(battles),
    )


def _groups(battles: Battles) -> tuple[tuple[str, ...], ...]:
    """Return who met whom, perhaps through others: nothing compares entrants of two groups."""
    met, others = np.append(battles.a, battles.b), np.append(battles.b, battles.a)
    components = components_of(len(battles.entrants), met, others)
    return tuple(tuple(battles.entrants[member] for member in members) for members in components)


def _other_ties(compared: Battles, parameters: EloParameters) -> OtherTies | None:
    """Rate under the other rule where ties are many."""
    if compared.account.tied_share <= MANY_TIES:
        return None
    ties: TieRule = "half" if parameters.ties == "drop" else "drop"
    battles = compared.by_outcome(ties)
    means = rate(battles, parameters, [parameters.k])[parameters.k].mean()
    return OtherTies(ties, dict(zip(battles.entrants, means.tolist(), strict=True)))


def _rated(
    dimension: Dimension,
    battles: Battles,
    ratings: EloRatings,
    resampled: EloBootstrap | None,
    n_prompts: NDArray[np.intp],
) -> Iterator[EloRow]:
    """Yield the rows of the entrants that have battles, in order of id."""
    means = ratings.mean()
    bounds = np.full((len(means), 2), np.nan)
    if resampled is not None:
        bounds = resampled.interval(means, n_prompts)
    n_matches = np.bincount(np.append(battles.a, battles.b), minlength=len(means))
    sem = ratings.order_sem()
    for i, name in enumerate(ratings.entrants):
        yield EloRow(
            dimension,
            name,
            rating=float(means[i]),
            ci95_low=known(bounds[i, 0]),
            ci95_high=known(bounds[i, 1]),
            order_sem=float(sem[i]),
            n_matches=int(n_matches[i]),
        )


def win_rates(
    groups: Mapping[Dimension, Battles], *, by_outcome: bool = False
) -> tuple[WinRateRow, ...]:
    """Count outcomes by pair of entrants: dimensions in their order, then pairs by name.

    An interval is Wilson's, of as many trials as would vary as much as prompts do: ties vary less
    than wins, and both orders of a pair, which share their prompt, are not two trials. There is
    none on fewer than two prompts. It is wider where there were looks. Each order's verdict counts
    by itself.

    Args:
        groups: The pairs of each dimension, or of an imported set.
        by_outcome: Whether shares are of decided and tied pairs alone, as a run's file has them.
    """
    return tuple(
        row
        for dimension, battles in groups.items()
        for row in _win_rates(dimension, battles, battles.outcome if by_outcome else battles.score)
    )


def _win_rates(dimension: str, compared: Battles, share: Floats) -> Iterator[WinRateRow]:
    """Yield the win rates of each pair; share: (n,) what a took, nan if that is not known."""
    names, a, b = compared.entrants, compared.a, compared.b
    status = np.where(a > b, _TURNED[compared.status], compared.status)
    taken, observed = (np.where(a > b, 1.0 - x, x) for x in (share, compared.observed))
    pair = np.minimum(a, b) * len(names) + np.maximum(a, b)
    in_order = np.argsort(pair, kind="stable")
    pairs, starts = np.unique(pair[in_order], return_index=True)
    groups = np.split(in_order, starts[1:])
    for number, places in zip(pairs.tolist(), groups, strict=False):  # none where there is no pair
        first, second = divmod(number, len(names))
        counts = np.bincount(status[places], minlength=len(STATUSES)).tolist()
        n = dict(zip(STATUSES, counts, strict=True))
        counted = places[~np.isnan(taken[places])]
        weight = compared.weight[counted]
        terms = RatioTerms(weight * taken[counted], weight)
        if not 0 <= terms.numerators.sum() <= weight.sum():  # more was taken off than there is
            terms = RatioTerms(weight * observed[counted], weight)
        share_of_a = estimate_ratio(terms, compared.cluster[counted].tolist(), "share")
        widened = _widened(share_of_a, compared.widening)
        yield WinRateRow(
            dimension,
            names[first],
            names[second],
            a_wins=n["a"],
            b_wins=n["b"],
            ties=n["tie"] + n[IDENTICAL],
            inconsistent=n["inconsistent"] + n[OPPOSITE] + n[TIE_BESIDE_WIN],
            missing=n["pending"] + sum(n[reason] for reason in FAILURES),
            win_rate=widened.value,
            ci95_low=widened.low,
            ci95_high=widened.high,
        )


def _widened(share: Estimate, by: float) -> Estimate:
    """Return a share with an interval so many times as wide, as far as shares go."""
    value, low, high = share.value, share.low, share.high
    if by == 1 or value is None or low is None or high is None:
        return share
    return share._replace(
        low=max(0.0, value - by * (value - low)), high=min(1.0, value + by * (high - value))
    )


_TURNED: Final = np.array([CODES[{"a": "b", "b": "a"}.get(status, status)] for status in STATUSES])
