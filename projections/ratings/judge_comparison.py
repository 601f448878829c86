"""Two judges, or two versions of one, on the same battles: how far ratings move.

Both judges' Bradley-Terry ratings are fitted to the battles that both judged. The interval of a
shift is paired: each prompt is left out of both fits at once, so that what the judges have in
common, above all which prompts there are, cancels out (the jackknife over clusters: Cameron and
Miller 2015, section III.B).

The judges are comparable if every shift is surely small, which is a test of equivalence: each 95 %
interval lies within the margin. They are not if some shift is surely large. Else nobody knows yet.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, battles_of
from projections.intervals import (
    FEWEST_CLUSTERS,
    LEVEL,
    Floats,
    RatioTerms,
    critical_value,
    estimate_difference,
    estimate_ratio,
    known,
)
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.rate import PointRatings, rate_points
from projections.ratings.elo.rate import prompts_met
from projections.ratings.forecast import prompts_needed
from projections.ratings.gate import MARGIN
from projections.reliability.agreement import VotesByAnnotator
from projections.results.judges import ChangedBattleRow, JudgeFlipRow, JudgeShiftRow
from projections.tournament.compared import IDENTICAL, ComparedBattle
from projections.tournament.settlement import Compared, Settlement

_PARAMETERS: Final = BradleyTerryParameters()
_CLOSE: Final = 1e-6  # of a strength
_AT_ONCE: Final = 256  # fits

Comparability: TypeAlias = Literal["comparable", "not comparable", "not enough battles"]
SharedBattles: TypeAlias = Sequence[tuple[Compared, Compared]]
"""What two judges found on the same battles."""


@dataclass(frozen=True)
class JudgeComparison:
    """Two judges on the battles of a dimension that both judged.

    Attributes:
        shifts: By entrant, in order of name.
        is_beyond: Whether some shift is surely beyond the margin, all tested at once.
    """

    dimension: str
    margin: float
    n_battles: int
    n_prompts: int
    shifts: tuple[JudgeShiftRow, ...]
    flips: tuple[JudgeFlipRow, ...]
    changed: tuple[ChangedBattleRow, ...]
    is_beyond: bool

    @property
    def verdict(self) -> Comparability:
        """Whether ratings by the one judge can be compared with ratings by the other."""
        if self.is_beyond:
            return "not comparable"
        bounds = [(row.ci95_low, row.ci95_high) for row in self.shifts]
        within = [
            low is not None and high is not None and -self.margin <= low and high <= self.margin
            for low, high in bounds
        ]
        return "comparable" if within and all(within) else "not enough battles"

    @property
    def n_prompts_needed(self) -> int | None:
        """With about how many prompts the shifts seen would prove comparable; None: with none."""
        needed = 0
        for row in self.shifts:
            if row.shift is None or row.ci95_high is None or abs(row.shift) >= self.margin:
                return None
            reach, goal = row.ci95_high - row.shift, self.margin - abs(row.shift)
            needed = max(needed, prompts_needed(self.n_prompts, reach, goal))
        return needed


def shared_battles(a: Sequence[Settlement], b: Sequence[Settlement]) -> SharedBattles:
    """Return what both judges have a verdict about, in the order of the first."""
    others = {settlement.battle_id: settlement for settlement in b if settlement.share is not None}
    return [
        (settlement, others[settlement.battle_id])
        for settlement in a
        if settlement.share is not None and settlement.battle_id in others
    ]


def compare(dimension: str, shared: SharedBattles, margin: float = MARGIN) -> JudgeComparison:
    """Compare two judges by what they found on the same battles.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    sides = [battles_of(pair[n] for pair in shared).by_verdicts("half") for n in (0, 1)]
    ratings = [rate_points(side, _PARAMETERS) for side in sides]
    moved = _moved(sides, ratings)
    n_prompts = len({first.cluster for first, _ in shared})
    read = [pair for pair in shared if pair[0].exact_status != IDENTICAL]
    return JudgeComparison(
        dimension,
        margin,
        len(shared),
        n_prompts,
        tuple(_shift_rows(dimension, sides[0], ratings, moved)) if shared else (),
        tuple(_flip_rows(dimension, read)),
        tuple(_changed_rows(read)),
        _is_beyond(moved, margin),
    )


class AgreementWithPeople(NamedTuple):
    """On how large a share of people's votes each of two judges agrees with them.

    gain: of B over A, with its 95 % interval, clustered by prompt; None of too few prompts.
    """

    n_votes: int
    by_a: float
    by_b: float
    low: float | None
    high: float | None

    @property
    def gain(self) -> float:
        """How much more often B agrees than A."""
        return self.by_b - self.by_a


def agreement_with_people(
    shared: SharedBattles, votes: VotesByAnnotator
) -> AgreementWithPeople | None:
    """Compare two judges by the votes on the battles that both judged; None without any.

    A judge whose orders contradict each other agrees with nobody. Identical responses are left
    out: they tie without a judge.
    """
    rows = [
        (first.cluster, first.status == vote, second.status == vote)
        for first, second in shared
        if first.exact_status != IDENTICAL
        for given in votes.values()
        for vote in _votes_on(first, given)
    ]
    if not rows:
        return None
    clusters = [cluster for cluster, _, _ in rows]
    a, b = (np.array([row[n] for row in rows], dtype=float) for n in (1, 2))
    ones = np.ones(len(rows))
    gain = estimate_difference(RatioTerms(a, ones), RatioTerms(b, ones), clusters, "plain")
    return AgreementWithPeople(len(rows), float(a.mean()), float(b.mean()), gain.low, gain.high)


def _votes_on(
    battle: Compared, given: Mapping[tuple[Hashable, frozenset[str]], ComparedBattle]
) -> Iterator[str]:
    """Yield what somebody voted on a battle, if it was one thing."""
    vote = given.get((battle.prompt_id, frozenset((battle.entrant_a, battle.entrant_b))))
    if vote is not None and vote.status != "inconsistent":
        yield vote.seen_from(battle.entrant_a).status


class _Moved(NamedTuple):
    """Shifts of n entrants, in Elo points; NaN where there is none.

    freedom: (n,) degrees of freedom of the interval.
    """

    shift: Floats
    error: Floats
    freedom: Floats

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the interval of each shift, (n,) and (n,)."""
        half = critical_value(level, np.nan_to_num(self.freedom, nan=1.0)) * self.error
        return self.shift - half, self.shift + half


def _moved(sides: Sequence[Battles], ratings: Sequence[PointRatings]) -> _Moved:
    """Return the shifts within each group of entrants that both judges can compare."""
    n = len(sides[0].entrants)
    shift, error, freedom = (np.full(n, np.nan) for _ in range(3))
    for members in _common_groups(ratings):
        inside = np.isin(sides[0].a, members) & np.isin(sides[0].b, members)
        both = [
            _strengths(*point_ratings.fitted(side, members)[:2])
            for side, point_ratings in zip(sides, ratings, strict=True)
        ]
        whole, without = (ELO * (second - first) for first, second in zip(*both, strict=True))
        n_prompts = len(without)
        weights = ratings[0].support.weight[members]  # of the mean that ratings are counted from
        shift[members] = whole - np.average(whole, weights=weights)
        without = without - np.average(without, axis=1, weights=weights)[:, None]
        spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
        met = prompts_met(sides[0].take(inside))[members]
        error[members] = np.where(
            met >= FEWEST_CLUSTERS, np.sqrt((n_prompts - 1) / n_prompts * spread), np.nan
        )
        freedom[members] = met - 1
    return _Moved(shift, error, freedom)


def _common_groups(ratings: Sequence[PointRatings]) -> Iterator[NDArray[np.intp]]:
    """Yield the groups of two entrants or more that have finite ratings by both judges."""
    first, second = ratings
    others = {tuple(members.tolist()) for members in second.rated_groups()}
    for members in first.rated_groups():
        if tuple(members.tolist()) in others:
            yield members


def _strengths(likelihood: Likelihood, fit: Floats) -> tuple[Floats, Floats]:
    """Return the strengths, (n,), and those without each prompt, (n_prompts, n)."""
    n = len(likelihood.units.count)
    some_at_once = (np.arange(n)[start : start + _AT_ONCE] for start in range(0, n, _AT_ONCE))
    without = [
        likelihood.refitted(1.0 - (places[:, None] == np.arange(n)), fit, tolerance=_CLOSE)
        for places in some_at_once
    ]
    return fit, np.concatenate(without)


def _is_beyond(moved: _Moved, margin: float) -> bool:
    """Say whether a shift is surely beyond the margin, by Bonferroni's bound over entrants."""
    tested = int((~np.isnan(moved.error)).sum())
    if not tested:
        return False
    low, high = moved.bounds(1 - (1 - LEVEL) / tested)
    return bool(((low > margin) | (high < -margin)).any())


def _shift_rows(
    dimension: str, battles: Battles, ratings: Sequence[PointRatings], moved: _Moved
) -> Iterator[JudgeShiftRow]:
    met, shift = prompts_met(battles), moved.shift
    low, high = moved.bounds(LEVEL)
    for n, entrant in enumerate(battles.entrants):
        reason = None
        if np.isnan(shift[n]):
            reason = "no finite rating by one of the judges, or among other entrants"
        elif np.isnan(moved.error[n]):
            reason = f"too few prompts, or one of them decides: {int(met[n])}"
        columns = (*(rating.rating for rating in ratings), shift, low, high)
        by_a, by_b, moved_by, least, most = (known(float(column[n])) for column in columns)
        yield JudgeShiftRow(
            dimension, entrant, by_a, by_b, moved_by, least, most, int(met[n]), reason
        )


def _flip_rows(dimension: str, shared: SharedBattles) -> Iterator[JudgeFlipRow]:
    pairs: defaultdict[tuple[str, str], list[tuple[Compared, Compared]]] = defaultdict(list)
    for pair in shared:
        pairs[pair[0].entrant_a, pair[0].entrant_b].append(pair)
    for (entrant_a, entrant_b), battles in pairs.items():
        differ = np.array([one.status != other.status for one, other in battles], dtype=float)
        clusters = [first.cluster for first, _ in battles]
        share = estimate_ratio(RatioTerms(differ, np.ones(len(battles))), clusters, "share")
        n_opposite = sum({one.status, other.status} == {"a", "b"} for one, other in battles)
        yield JudgeFlipRow(
            dimension,
            entrant_a,
            entrant_b,
            len(battles),
            int(differ.sum()),
            n_opposite,
            share.low,
            share.high,
        )


def _changed_rows(shared: SharedBattles) -> Iterator[ChangedBattleRow]:
    for first, second in shared:
        if first.status != second.status:
            yield ChangedBattleRow(
                first.battle_id,
                first.dimension,
                first.prompt_id,
                first.entrant_a,
                first.entrant_b,
                _named(first),
                _named(second),
            )


def _named(compared: Compared) -> str:
    return compared.winner or compared.status
