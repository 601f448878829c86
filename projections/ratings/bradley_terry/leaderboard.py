"""Leaderboards by Bradley-Terry rating: which differences are sure, ranks, and groups.

Among n equal entrants, one of n (n - 1) / 2 differences is soon beyond 1.96 standard errors. So the
largest |z| of all pairs is simulated, z being normal with the covariance of the ratings; what it
exceeds with a chance of 5 % is the critical value of every pair (max-t, single step: Hothorn, Bretz
and Westfall 2008). Then, with a chance of 95 %, no difference is wrongly called sure, and all ranks
hold the true ones (Mogstad, Romano, Shaikh and Wilhelm 2024).

Where one entrant is in every battle, as against a baseline, the n - 1 differences from it were
planned, and the largest |z| is that of these. A difference of two others is that of two such
differences, and its reach the sum of theirs. So all hold at once, and those that were planned are
tested with more power. Ranks compare all pairs in any case.

A covariance from few clusters is unsure itself: a critical value is taken over to Student's t with
the pair's degrees of freedom, at the same chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats, critical_value, known, two_sided_p
from projections.ratings.bradley_terry.component import NO_SPREAD
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.results.ratings import BradleyTerryPair, BradleyTerryRow

NO_BATTLE: Final = "no battle"
"""The reason of an entrant that was not among those that were rated, or never won nor lost."""


@dataclass(frozen=True)
class Leaderboard:
    """Entrants that were rated together, the best first, then those without battles.

    A component that is above another comes first, and within a component the higher rating; between
    components without an order, the order of rows means nothing.
    """

    name: str  # of the dimension, or whatever was rated
    rows: tuple[BradleyTerryRow, ...]
    ratings: BradleyTerryRatings

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The entrants of each component, the best first; rows count them from 1."""
        numbers = range(1, len(self.ratings.components) + 1)
        return tuple(
            tuple(place.entrant for place in self.rows if place.group == number)
            for number in numbers
        )

    @property
    def above(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups: (3, 5) says that the third is above the fifth, counting from 1."""
        return tuple((x + 1, y + 1) for x, y in np.argwhere(self.ratings.components.above).tolist())


def leaderboard(
    name: str, battles: Battles, parameters: BradleyTerryParameters, roster: Iterable[str] = ()
) -> Leaderboard:
    """Rate entrants by their battles, and order them.

    An anchor without battles is dropped, and the ratings' parameters say so. The roster is listed
    even without a battle; the name is the dimension, or another.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    if parameters.anchor not in {None, *battles.entrants}:
        parameters = replace(parameters, anchor=None)
    return board_of(name, rate(battles, parameters), roster)


def board_of(name: str, ratings: BradleyTerryRatings, roster: Iterable[str] = ()) -> Leaderboard:
    """Order rated entrants, then list those of the roster that were not rated."""
    low, high = ranks(ratings)
    rows = zip(ratings.rows(name), low.tolist(), high.tolist(), strict=True)
    placed = [
        row._replace(
            rank=_rank(rank_low, rank_high),
            rank_low=rank_low or None,
            rank_high=rank_high or None,
            reason=row.reason if row.n_battles or row.rating is not None else NO_BATTLE,
        )
        for row, rank_low, rank_high in rows
    ]
    idle = [
        BradleyTerryRow(name, entrant, reason=NO_BATTLE)
        for entrant in roster
        if entrant not in ratings.entrants
    ]
    return Leaderboard(name, (*sorted(placed, key=_from_the_best_down), *idle), ratings)


def _rank(low: int, high: int) -> str | None:
    """Return ranks as "1" or "2-4"; None: there are none."""
    if low == high:
        return str(low) if low else None
    return f"{low}-{high}"


def _from_the_best_down(place: BradleyTerryRow) -> tuple[bool, int | None, float]:
    return place.reason == NO_BATTLE, place.group, -(place.rating or 0.0)


_DECIMALS: Final = 6  # of Elo points: what differs by less is equal but for rounding
_MOST_DRAWS: Final = 9_999
_FEWEST_DRAWS: Final = 999
_WORK: Final = 20_000_000  # draws times pairs; from 200 entrants on, the fewest draws
_SECOND_STREAM: Final = (1,)  # of a seed; resamples are its first
_FEWEST_IN_STAR: Final = 3  # of two entrants each is in every battle
_JITTER: Final = 1e-9  # of a variance: a covariance of few clusters is singular


@dataclass(frozen=True)
class Differences:
    """The differences of n ratings, (n, n) each: row minus column, in Elo points.

    points: NaN between components; error: their standard error, also NaN without an interval and
    where no two clusters differ about both; freedom: degrees of freedom.
    """

    points: Floats
    error: Floats
    freedom: Floats

    def p(self) -> Floats:
        """Return the chance of a difference at least as large between equals, (n, n)."""
        return two_sided_p(np.abs(self.points) / self.error, self.freedom)


def differences(ratings: BradleyTerryRatings) -> Differences:
    """Return the differences of all pairs."""
    label = ratings.components.label
    gaps = np.round(ratings.rating[:, None] - ratings.rating, _DECIMALS)
    points = np.where(label[:, None] == label, gaps, np.nan)
    variance = ratings.covariance.diagonal()
    squared = variance[:, None] + variance - (ratings.covariance + ratings.covariance.T)
    error = np.sqrt(np.maximum(squared, 0.0))
    known_error = np.where(error < NO_SPREAD, np.nan, error)
    return Differences(points, known_error, np.maximum(ratings.freedom, 1.0))


def p_better(ratings: BradleyTerryRatings) -> Floats:
    """Return the probability that each entrant is better than each other, (n, n).

    Student's distribution function at the difference over its standard error; NaN between
    components, without intervals, where no two clusters differ about both, and on the diagonal.
    """
    gaps = differences(ratings)
    tail = gaps.p() / 2
    return np.asarray(np.where(gaps.points > 0, 1 - tail, tail))


def ranks(ratings: BradleyTerryRatings) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rank entrants by the differences that are sure at the level of the ratings' intervals.

    Returns:
        (n,) 1 + how many of its component are surely better than each, and (n,) how many are not
        surely worse, itself included; 0: it has no interval, and no rank.
    """
    low, high = np.zeros((2, len(ratings.entrants)), dtype=np.intp)
    gaps = differences(ratings)
    for members in _ranked(ratings):
        inside = np.ix_(members, members)
        largest = _simulated(ratings, gaps, members)
        single = _single_p(largest, 1 - ratings.parameters.level)
        reach = critical_value(1 - single, gaps.freedom[inside]) * gaps.error[inside]
        better = gaps.points[inside] > reach
        low[members], high[members] = 1 + better.sum(axis=0), len(members) - better.sum(axis=1)
    return low, high


def pairs(ratings: BradleyTerryRatings, dimension: str = "") -> tuple[BradleyTerryPair, ...]:
    """Compare all pairs of each component at once, from the largest difference down.

    Bounds and p are lacking where one has no interval, or no two clusters differ about both.
    """
    alpha, baseline = 1 - ratings.parameters.level, baseline_of(ratings)
    gaps = _through(differences(ratings), baseline)
    adjusted, reach = np.full((2, *gaps.points.shape), np.nan)
    for members in _ranked(ratings):
        inside = np.ix_(members, members)
        largest = _simulated(ratings, gaps, members, baseline)
        adjusted[inside] = _adjusted_p(largest, gaps.p()[inside])
        critical = critical_value(1 - _single_p(largest, alpha), gaps.freedom[inside])
        reach[inside] = critical * gaps.error[inside]
    rows = _rows(dimension, ratings.entrants, gaps, adjusted, reach)
    return tuple(sorted(rows, key=lambda row: -row.difference))


def _rows(
    dimension: str, entrants: Sequence[str], gaps: Differences, adjusted: Floats, reach: Floats
) -> Iterator[BradleyTerryPair]:
    for i, j in combinations(range(len(entrants)), 2):
        if not np.isnan(gaps.points[i, j]):
            a, b = (i, j) if gaps.points[i, j] >= 0 else (j, i)
            gap, most = float(gaps.points[a, b]), reach[a, b]
            bounds = known(gap - most), known(gap + most)
            p = known(adjusted[a, b])
            yield BradleyTerryPair(dimension, entrants[a], entrants[b], gap, *bounds, p)


def baseline_of(ratings: BradleyTerryRatings) -> int | None:
    """Return which of three entrants or more is in every battle; None: there is none.

    Nor is there where its rating has no error, and so no difference from it.
    """
    n_battles = ratings.n_battles
    most = int(n_battles.argmax())
    is_in_all = 2 * n_battles[most] == n_battles.sum()
    has_error = not np.isnan(ratings.covariance[most, most])
    return most if is_in_all and has_error and len(n_battles) >= _FEWEST_IN_STAR else None


def _through(gaps: Differences, baseline: int | None) -> Differences:
    """Return differences where those of two others are bounded by theirs from a baseline."""
    if baseline is None:
        return gaps
    error, freedom = gaps.error[baseline], gaps.freedom[baseline]
    is_baseline = np.arange(len(error)) == baseline
    stays = is_baseline | is_baseline[:, None] | np.isnan(gaps.error)
    return Differences(
        gaps.points,
        np.where(stays, gaps.error, error + error[:, None]),
        np.where(stays, gaps.freedom, np.minimum(freedom, freedom[:, None])),
    )


def _ranked(ratings: BradleyTerryRatings) -> Iterator[NDArray[np.intp]]:
    """Yield the entrants of each component that have a covariance, two at least."""
    has_covariance = ~np.isnan(ratings.covariance.diagonal())
    for members in ratings.components:
        ranked = members[has_covariance[members]]
        if len(ranked) > 1:
            yield ranked


def _single_p(largest: Floats, alpha: float) -> float:
    """Return the p that a single pair must stay below, for all pairs to keep alpha.

    Of n draws, at most alpha (n + 1) - 1 may be as large as what is called sure.
    """
    place = len(largest) - int(alpha * (len(largest) + 1) + _JITTER)
    return 2 * NormalDist().cdf(-float(largest[min(place, len(largest) - 1)]))


def _adjusted_p(largest: Floats, p: Floats) -> Floats:
    """Return the chance that the smallest p of all pairs is at least as small as each."""
    tail = np.clip(np.nan_to_num(p, nan=1.0) / 2, 1e-300, 0.5)
    z = -np.array([NormalDist().inv_cdf(half) for half in tail.flat]).reshape(p.shape)
    n_beyond = len(largest) - np.searchsorted(largest, z)
    return np.where(np.isnan(p), np.nan, (1 + n_beyond) / (1 + len(largest)))


def _simulated(
    ratings: BradleyTerryRatings,
    gaps: Differences,
    members: NDArray[np.intp],
    baseline: int | None = None,
) -> Floats:
    """Return the largest |z| of all pairs in each draw, (n_draws,), ascending.

    The ratings of equals are simulated, with the covariance and the seed of the ratings.

    Pairs are taken row by row, so that memory grows with draws times entrants. Where there is a
    baseline, the largest |z| is that of the differences from it.
    """
    n, inside = len(members), np.ix_(members, members)
    covariance = ratings.covariance[inside]
    variance = covariance.diagonal().mean() + _JITTER
    root = np.linalg.cholesky(covariance + _JITTER * variance * np.eye(n))
    seed = np.random.SeedSequence(ratings.parameters.seed, spawn_key=_SECOND_STREAM)
    n_draws = min(_MOST_DRAWS, max(_FEWEST_DRAWS, 2 * _WORK // n**2))
    drawn = np.random.default_rng(seed).standard_normal((n_draws, n), dtype=np.float32)
    z = (drawn @ root.T).astype(np.float32)
    scale = np.nan_to_num(1 / gaps.error[inside], nan=0.0).astype(np.float32)
    if baseline is not None:
        is_baseline = members == baseline
        scale *= is_baseline | is_baseline[:, None]
    largest = np.zeros(n_draws, dtype=np.float32)
    for i in range(n - 1):
        beyond = np.abs(z[:, i + 1 :] - z[:, i : i + 1]) * scale[i, i + 1 :]
        largest = np.maximum(largest, beyond.max(axis=1))
    return np.sort(largest).astype(np.float64)
