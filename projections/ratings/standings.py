"""Standings by Elo on one dimension, unrated entrants included, and head-to-head win rates."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ledger.events.ratings import EloParameters, TieRule
from ledger.identity import Dimension
from projections.battles.columns import Battles
from projections.battles.comparisons import Comparisons, comparisons_of
from projections.intervals import Estimate, Interval, RatioTerms, estimate_ratio, known
from projections.ratings.elo.rate import EloRatings, prompts_met, rate
from projections.ratings.elo.uncertainty import EloBootstrap, uncertainty
from projections.tournament.compared import FAILURES, Account, Compared

MANY_TIES: Final = 0.2
"""The share of ties above which ratings are computed both with and without them."""

TIES: Final[Mapping[TieRule, str]] = {"drop": "Ties dropped", "half": "Ties as half"}
"""How a column of ratings under a rule for ties is headed."""

WHY_DROPPED: Final = "Ties are dropped by default only because the published engine drops them."


class Standing(NamedTuple):
    """One entrant's Elo rating; None if it has no battle that counts."""

    entrant_id: str
    rating: float | None
    lower: float | None  # of the 95 % interval by resampling prompts; None: there is none
    upper: float | None
    order_sem: float | None  # dependence on the order of play, not uncertainty
    n_matches: int
    n_prompts: int  # on which it met another


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
    rows: tuple[Standing, ...]
    ratings: EloRatings
    bootstrap: EloBootstrap | None
    sweep: tuple[tuple[float, EloRatings], ...]
    account: Account
    other_ties: OtherTies | None  # None: there are few ties

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
    dimension: Dimension,
    compared: Iterable[Compared] | Comparisons,
    roster: Sequence[str],
    parameters: EloParameters,
) -> Standings:
    """Compute the standings on a dimension, or in an imported set.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    comparisons = comparisons_of(compared)
    battles = comparisons.battles(ties=parameters.ties)
    by_k = rate(battles, parameters, [*dict.fromkeys((parameters.k, *parameters.k_sweep))])
    ratings = by_k[parameters.k]
    n_judged = comparisons.n_judged_prompts
    resampled = uncertainty(battles, ratings, parameters, n_prompts=n_judged)
    rated = sorted(_rated(battles, ratings, resampled), key=lambda row: -(row.rating or 0.0))
    unrated = [name for name in roster if name not in battles.entrants]
    return Standings(
        dimension=dimension,
        k=parameters.k,
        ties=parameters.ties,
        rows=(*rated, *(Standing(name, None, None, None, None, 0, 0) for name in unrated)),
        ratings=ratings,
        bootstrap=resampled,
        sweep=tuple((k, by_k[k]) for k in parameters.k_sweep),
        account=comparisons.account,
        other_ties=_other_ties(comparisons, parameters),
    )


def _other_ties(comparisons: Comparisons, parameters: EloParameters) -> OtherTies | None:
    """Rate under the other rule where ties are many."""
    if comparisons.account.tied_share <= MANY_TIES:
        return None
    ties: TieRule = "half" if parameters.ties == "drop" else "drop"
    battles = comparisons.battles(ties=ties)
    means = rate(battles, parameters, [parameters.k])[parameters.k].mean()
    return OtherTies(ties, dict(zip(battles.entrants, means.tolist(), strict=True)))


def _rated(
    battles: Battles, ratings: EloRatings, resampled: EloBootstrap | None
) -> Iterator[Standing]:
    """Yield the rows of the entrants that have battles, in order of id."""
    means, n_prompts = ratings.mean(), prompts_met(battles)
    bounds = np.full((len(means), 2), np.nan)
    if resampled is not None:
        bounds = resampled.interval(means, n_prompts)
    n_matches = np.bincount(np.append(battles.a, battles.b), minlength=len(means))
    sem = ratings.order_sem()
    for i, name in enumerate(ratings.entrants):
        yield Standing(
            name,
            rating=float(means[i]),
            lower=known(bounds[i, 0]),
            upper=known(bounds[i, 1]),
            order_sem=float(sem[i]),
            n_matches=int(n_matches[i]),
            n_prompts=int(n_prompts[i]),
        )


class WinRate(NamedTuple):
    """One pair of entrants on one dimension; a comes before b in the alphabet."""

    dimension: str
    entrant_a: str
    entrant_b: str
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    missing: int  # failed or still pending

    share: Estimate  # a's of decided and tied pairs, a tie as half

    @property
    def win_rate(self) -> float | None:
        """A's share of decided and tied pairs, ties as half; None if there are none."""
        return self.share.value

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of a's share; None on fewer than two prompts.

        It is Wilson's, of as many trials as would vary as much as prompts do: ties vary less than
        wins, and both orders of a pair, which share their prompt, are not two trials.
        """
        low, high = self.share.low, self.share.high
        return None if low is None or high is None else Interval(low, high)


def win_rates(compared: Iterable[Compared]) -> tuple[WinRate, ...]:
    """Count outcomes by pair of entrants: dimensions in their order, then pairs by name."""
    counts: defaultdict[_Pair, Counter[str]] = defaultdict(Counter)
    scores: defaultdict[_Pair, list[_Score]] = defaultdict(list)
    for each in compared:
        first, second, status = each.entrant_a, each.entrant_b, each.status
        is_turned = first > second
        key = (each.dimension, second, first) if is_turned else (each.dimension, first, second)
        counts[key][_TURNED.get(status, status) if is_turned else status] += 1
        if (share := each.share) is not None:
            taken = 1 - share if is_turned else share
            scores[key].append((each.cluster, taken, each.weight))
    ordered = list(dict.fromkeys(dimension for dimension, *_ in counts))
    keys = sorted(counts, key=lambda key: (ordered.index(key[0]), *key[1:]))
    return tuple(_win_rate(key, counts[key], scores[key]) for key in keys)


_Pair: TypeAlias = tuple[str, str, str]


_Score: TypeAlias = tuple[Hashable, float, float]
"""The prompt, what the first entrant of a pair took on it, and how often it counts."""
_TURNED: Final[Mapping[str, str]] = {"a": "b", "b": "a"}


def _win_rate(key: _Pair, count: Counter[str], scores: Sequence[_Score]) -> WinRate:
    prompts = [prompt for prompt, _, _ in scores]
    taken = np.array([taken for _, taken, _ in scores], dtype=np.float64)
    weight = np.array([weight for _, _, weight in scores], dtype=np.float64)
    return WinRate(
        *key,
        a_wins=count["a"],
        b_wins=count["b"],
        ties=count["tie"],
        inconsistent=count["inconsistent"],
        missing=count["pending"] + sum(count[reason] for reason in FAILURES),
        share=estimate_ratio(RatioTerms(weight * taken, weight), prompts, "share"),
    )
