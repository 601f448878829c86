"""Standings by Elo on one dimension, unrated entrants included, and head-to-head win rates."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ledger.events.ratings import EloParameters
from ledger.identity import Dimension, EntrantId, PromptId
from projections.battles.columns import Battles
from projections.battles.settled import settled_battles
from projections.intervals import Estimate, Interval, RatioTerms, estimate_ratio, known
from projections.ratings.elo import EloBootstrap, EloRatings, bootstrap, rate
from projections.tournament.settlement import (
    FAILURES,
    Account,
    Settlement,
    account_of,
    decided_or_tied,
)

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
    judged = {each.pairing.prompt.prompt_id for each in decided_or_tied(settlements)}
    resampled = bootstrap(battles, parameters, k=parameters.k, n_prompts=len(judged))
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


def win_rates(settlements: Iterable[Settlement]) -> tuple[WinRate, ...]:
    """Count outcomes by pair of entrants: dimensions in their order, then pairs by name."""
    counts: defaultdict[_Pair, Counter[str]] = defaultdict(Counter)
    scores: defaultdict[_Pair, list[tuple[PromptId, float]]] = defaultdict(list)
    for settlement in settlements:
        pairing = settlement.pairing
        first, second = pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id
        a, b = sorted((first, second))
        key = (pairing.rubric.dimension, a, b)
        won: dict[EntrantId | None, str] = {a: "a", b: "b", None: settlement.status}
        counts[key][won[settlement.winner]] += 1
        if (score := settlement.score) is not None:
            scores[key].append((pairing.prompt.prompt_id, score if a == first else 1 - score))
    ordered = list(dict.fromkeys(dimension for dimension, *_ in counts))
    keys = sorted(counts, key=lambda key: (ordered.index(key[0]), *key[1:]))
    return tuple(_win_rate(key, counts[key], scores[key]) for key in keys)


_Pair: TypeAlias = tuple[Dimension, EntrantId, EntrantId]


def _win_rate(key: _Pair, count: Counter[str], scores: Sequence[tuple[PromptId, float]]) -> WinRate:
    prompts = [prompt for prompt, _ in scores]
    taken = np.array([score for _, score in scores], dtype=np.float64)
    return WinRate(
        *key,
        a_wins=count["a"],
        b_wins=count["b"],
        ties=count["tie"],
        inconsistent=count["inconsistent"],
        missing=count["pending"] + sum(count[reason] for reason in FAILURES),
        share=estimate_ratio(RatioTerms(taken, np.ones_like(taken)), prompts, "share"),
    )
