"""Looks at a tournament before it is whole: which pairs are decided, and which are futile.

Each look tests all pairs that are still open by their differences of Bradley-Terry ratings over
standard errors, as |z| of the normal distribution at the chance that Student's t gives, against the
critical value of the largest of them (`boundaries`). When a pair is decided the others are tested
again without it (step-down).

A pair is futile if what is left would decide it in less than 1 % of cases under its trend so far,
or than 5 % in a counterbalanced tournament.
It is asked no more, and is tested all the same, so that futility can only lower the error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, combinations
from math import inf, isfinite, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.judging import DimensionLook, LookTaken, PairOfEntrants
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import Reference, Rubric
from ledger.identity import EntrantId, PromptId
from projections.battles.columns import Battles, battles_of
from projections.intervals import Floats
from projections.ratings.boundaries import DECIMALS, Contrasts, Schedule, critical_values, root
from projections.ratings.bradley_terry.leaderboard import differences
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.ratings.forecast import FEWEST_PROMPTS
from projections.tournament.bank import is_eligible
from projections.tournament.designs import Orders, design_of
from projections.tournament.settlement import by_dimension, settle_verdicts
from projections.tournament.state import Tournament
from projections.tournament.waves import (
    decided_pairs,
    entrant_reference,
    judge_reference,
    looked_at,
    looks_at,
    looks_taken,
    n_looks_of,
    open_wave,
    planned_looks,
    prompts_so_far,
    stops_of,
)

_FUTILE: Final[Mapping[Orders, float]] = MappingProxyType({"both": 0.01, "counterbalanced": 0.05})
"""The chance of a decision below which a pair is asked no more; who asks less stops sooner."""
_N_WORLDS: Final = 1_000  # of a forecast
_N_FORECAST_DRAWS: Final = 20_000
_N_NUMBERS: Final = 8  # of pairs, for which critical values are simulated
_BEYOND: Final = 1e3  # above any z
_SEED: Final = 20260427
_NORMAL: Final = NormalDist()


def look_now(tournament: Tournament) -> LookTaken:
    """Look at the verdicts on the prompts so far, as a wave of them is judged.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    bank = [prompt.prompt_id for prompt in tournament.bank]
    prompts = frozenset(prompts_so_far(tournament, bank))
    judge, n_looks = looked_at(tournament), n_looks_of(tournament) or 1
    asked, wave = tournament.opening.prompts if tournament.opening else (), {*open_wave(tournament)}
    groups = by_dimension(tournament, settle_verdicts(tournament, prompts, judge))
    return LookTaken(
        number=len(tournament.looks) + 1,
        judge=judge_reference(tournament),
        n_looks=n_looks,
        prompts=tuple(reference for reference in asked if reference.label in wave),
        dimensions=tuple(
            look
            for rubric in tournament.dimensions
            if (look := _look_on(tournament, rubric, prompts, battles_of(groups[rubric.dimension])))
        ),
    )


def decides_alike(one: LookTaken, other: LookTaken) -> bool:
    """Say whether two looks decide the same; processors differ in the last digits of a fit."""
    return [_decisions(seen) for seen in one.dimensions] == [
        _decisions(seen) for seen in other.dimensions
    ]


def _decisions(look: DimensionLook) -> tuple[object, ...]:
    return look.rubric, look.n_prompts, look.n_planned, {*look.decided}, {*look.futile}


def _look_on(
    tournament: Tournament, rubric: Rubric, prompts: AbstractSet[PromptId], battles: Battles
) -> DimensionLook | None:
    """Look at a dimension; None where there is nothing to see yet."""
    before = looks_at(tournament, rubric)
    eligible = [prompt.prompt_id for prompt in tournament.bank if is_eligible(rubric, prompt)]
    n_prompts, n_planned = len(prompts & {*eligible}), len(eligible)
    if not n_prompts or np.isnan(battles.score).all():
        return None
    decided = decided_pairs(tournament, rubric)
    contests = [pair for pair in _planned(tournament) if frozenset(pair) not in decided]
    look = look_at(battles, contests, _schedule(tournament, before, n_prompts, n_planned))
    references = {entrant.entrant_id: entrant_reference(entrant) for entrant in tournament.roster}
    as_decided, as_futile = (
        tuple(PairOfEntrants(*(references[EntrantId(name)] for name in pair)) for pair in pairs)
        for pairs in (look.decided, look.futile)
    )
    return DimensionLook(
        rubric=Reference(label=rubric.dimension, digest=rubric.digest),
        n_prompts=n_prompts,
        n_planned=n_planned,
        critical=look.critical if isfinite(look.critical) else None,
        widening=look.widening,
        decided=as_decided,
        futile=as_futile,
    )


def _planned(tournament: Tournament) -> Iterator[tuple[str, str]]:
    """Yield the pairs whose difference is tested: from the baseline, where there is one."""
    baseline = design_of(tournament).baseline
    for a, b in combinations([entrant.entrant_id for entrant in tournament.roster], 2):
        if baseline in {None, a, b}:
            yield a, b


def _schedule(
    tournament: Tournament, before: Sequence[DimensionLook], n_prompts: int, n_planned: int
) -> Schedule:
    share = n_prompts / n_planned
    n_to_come = max((n_looks_of(tournament) or 1) - len(looks_taken(tournament)) - 1, share < 1)
    steps = [share + (1 - share) * (n + 1) / n_to_come for n in range(n_to_come)]
    shares = [min(look.n_prompts / n_planned, share) for look in before]
    earlier = [*accumulate(shares, max)]  # a bank that shrank may have lost more of its first waves
    critical = [inf if look.critical is None else look.critical for look in before]
    futile = _FUTILE[design_of(tournament).orders]
    is_any = planned_looks(tournament) == "any"
    return Schedule([*earlier, share, *steps], critical, is_any, futile)


Contest: TypeAlias = tuple[str, str]
"""Two entrants: the better one first where a look decided."""


class Look(NamedTuple):
    """What a look decides.

    `widening` is how much wider intervals are, since there are looks: the critical value of the
    last of all looks over that of a single look.
    """

    critical: float  # |z| from which a pair is decided; infinite: none can be
    decided: tuple[Contest, ...]
    futile: tuple[Contest, ...]
    widening: float


def look_at(
    battles: Battles, contests: Iterable[Contest], schedule: Schedule, *, n_draws: int | None = None
) -> Look:
    """Decide which pairs are different by the battles so far, and which will hardly be.

    Args:
        battles: On the prompts so far, of all pairs that were asked.
        contests: Those that no earlier look decided.
        schedule: Of the looks.
        n_draws: As for `critical_values`.

    Raises:
        CannotRate: The battles cannot be rated.
    """
    ratings = rate(battles.by_verdicts("half"), BradleyTerryParameters())
    everything = _testable(ratings, contests)
    if everything is None:
        return Look(inf, (), (), 1.0)
    values = partial(critical_values, n_draws=n_draws)
    as_first = values(everything.contrasts, schedule._replace(critical=()))
    tested, decided = everything, list[Contest]()
    while True:
        is_first = tested is everything and not schedule.critical
        later = as_first if is_first else values(tested.contrasts, schedule)
        critical, last = later[len(schedule.critical)], later[-1]
        is_decided = np.abs(tested.z) >= critical
        decided += [tested.contest(place) for place in np.flatnonzero(is_decided).tolist()]
        if is_decided.all() or not is_decided.any():
            break
        tested = tested.take(~is_decided)
    futile = [] if is_decided.all() else _futile(tested, schedule, last)
    (single,) = values(everything.contrasts, Schedule((1.0,)))
    return Look(critical, tuple(decided), tuple(futile), round(as_first[-1] / single, DECIMALS))


@dataclass(frozen=True)
class _Tested:
    """The differences of m pairs that have an error, and their z, (m,); names: of the entrants."""

    names: Sequence[str]
    contrasts: Contrasts
    z: Floats

    def take(self, chosen: NDArray[np.bool_]) -> "_Tested":
        """Select pairs."""
        return _Tested(self.names, self.contrasts.take(chosen), self.z[chosen])

    def contest(self, place: int) -> Contest:
        """Return a pair, the one ahead first."""
        a, b = (self.names[ends[place]] for ends in (self.contrasts.a, self.contrasts.b))
        return (a, b) if self.z[place] >= 0 else (b, a)


def _testable(ratings: BradleyTerryRatings, contests: Iterable[Contest]) -> _Tested | None:
    """Return those pairs whose difference has an error; None if there are none."""
    places = {name: place for place, name in enumerate(ratings.entrants)}
    met = [(places[a], places[b]) for a, b in contests if {a, b} <= places.keys()]
    a, b = np.array(met, dtype=np.intp).reshape(-1, 2).T
    gaps = differences(ratings)
    points, error, p = (table[a, b] for table in (gaps.points, gaps.error, gaps.p()))
    has_error = ~np.isnan(p)
    if not has_error.any():
        return None
    size = np.array([-_NORMAL.inv_cdf(max(each, 1e-300) / 2) for each in p[has_error]])
    covariance = np.nan_to_num(ratings.covariance, nan=0.0)
    contrasts = Contrasts(covariance, a[has_error], b[has_error], error[has_error])
    return _Tested(ratings.entrants, contrasts, np.sign(points[has_error]) * size)


def _futile(tested: _Tested, schedule: Schedule, last: float) -> list[Contest]:
    """Return the pairs that the looks to come would hardly decide."""
    share = schedule.share
    if share >= 1 or not isfinite(last):  # all is judged, or all was spent by a smaller bank
        return []
    trend = np.abs(tested.z) / sqrt(share)
    chance = [_NORMAL.cdf((z - last) / sqrt(1 - share)) for z in trend]
    return [tested.contest(place) for place, p in enumerate(chance) if p < schedule.futile]


def waves_to_ask(
    tournament: Tournament, rubric: Rubric
) -> Mapping[AbstractSet[str], NDArray[np.intp]]:
    """Simulate in how many of the waves to come each pair is asked on a dimension, (n_worlds,).

    Pairs that are not named may be asked in all; all may where too little was judged so far.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    bank = frozenset(prompt.prompt_id for prompt in tournament.bank)
    settled = by_dimension(tournament, settle_verdicts(tournament, bank, looked_at(tournament)))
    battles = battles_of(settled[rubric.dimension])
    eligible = [prompt.prompt_id for prompt in tournament.bank if is_eligible(rubric, prompt)]
    n_judged, n_planned = len(np.unique(battles.cluster[~np.isnan(battles.score)])), len(eligible)
    if n_judged < FEWEST_PROMPTS:
        return {}
    n_prompts = len({*eligible}.intersection(prompts_so_far(tournament, bank)))
    schedule = _schedule(tournament, looks_at(tournament, rubric), n_prompts, n_planned)
    stopped = {
        pair for dimension, pair in stops_of(tournament).last_wave if dimension == rubric.dimension
    }
    contests = [pair for pair in _planned(tournament) if frozenset(pair) not in stopped]
    share = max([n_judged / n_planned, *schedule.shares[: len(schedule.critical)]])
    return waves_asked(battles, contests, schedule, share)


def waves_asked(
    battles: Battles, contests: Iterable[Contest], schedule: Schedule, share: float
) -> Mapping[AbstractSet[str], NDArray[np.intp]]:
    """Simulate in how many of the waves to come each pair will be asked, (n_worlds,).

    In each world the true differences, and the verdicts to come, are as they may be by the battles
    so far. Then each look decides as it will; with a pair that is asked no more, the evidence on
    the others grows as before. Pairs without an error so far are left out: each may be asked in all
    waves.

    Args:
        battles: So far, on more prompts than the looks so far saw, or as many.
        contests: Those that no look stopped.
        schedule: Of the looks; the next one follows the first of the waves to come.
        share: Of the prompts that the battles are on.

    Raises:
        CannotRate: The battles cannot be rated.
    """
    tested = _testable(rate(battles.by_verdicts("half"), BradleyTerryParameters()), contests)
    if tested is None:
        return {}
    critical, n = _critical_by_number(tested, schedule), len(schedule.critical)
    is_open = np.ones((_N_WORLDS, len(tested.z)), dtype=np.bool_)
    is_tested, n_waves = is_open.copy(), np.zeros(is_open.shape, dtype=np.intp)
    for look, z in enumerate(_paths(tested, schedule.shares[n:], share), n):
        n_waves += is_open
        n_before = -1
        while n_before != (n_before := int(is_tested.sum())):  # step-down
            is_tested &= np.abs(z) < critical[look][is_tested.sum(axis=1)][:, None]
        last = critical[-1][is_tested.sum(axis=1)][:, None]
        now = schedule.shares[look]
        if now < 1:
            missing = last - np.abs(z) / sqrt(now)
            is_open &= is_tested & (missing < sqrt(1 - now) * -_NORMAL.inv_cdf(schedule.futile))
    pairs = map(frozenset, map(tested.contest, range(len(tested.z))))
    return dict(zip(pairs, n_waves.T, strict=True))


def _critical_by_number(tested: _Tested, schedule: Schedule) -> Floats:
    """Return the critical values, (n_looks, 1 + m), of as many pairs as are left.

    Those whose difference is the clearest are decided first. Between numbers that are simulated,
    critical values grow with the logarithm.
    """
    m = len(tested.z)
    numbers = np.unique(np.geomspace(1, m, num=min(m, _N_NUMBERS)).round().astype(np.intp))
    order = np.argsort(np.abs(tested.z))
    found = [
        critical_values(tested.contrasts.take(order[:number]), schedule, n_draws=_N_FORECAST_DRAWS)
        for number in numbers
    ]
    every, at = np.log(np.maximum(1, np.arange(m + 1))), np.log(numbers)
    by_look = np.minimum(np.array(found).T, _BEYOND)  # where nothing may be spent yet
    return np.array([np.interp(every, at, values) for values in by_look])


def _paths(tested: _Tested, shares: Sequence[float], share: float) -> Iterator[Floats]:
    """Yield z at each share of the evidence, (n_worlds, m), as it may be given z at one share."""
    rng, n = np.random.default_rng(_SEED), len(tested.contrasts.covariance)

    def noise() -> Floats:
        """Draw differences of equals, of variance 1."""
        drawn = rng.standard_normal((_N_WORLDS, n)) @ root(tested.contrasts.covariance)
        return (
            drawn[:, tested.contrasts.a] - drawn[:, tested.contrasts.b]
        ) / tested.contrasts.error

    seen = tested.z * sqrt(share)  # as a sum, which grows with the evidence
    trend = (seen + sqrt(share) * noise()) / share
    after, at = np.broadcast_to(seen, trend.shape), share  # the sum at a later share
    before, start = np.zeros_like(trend), 0.0  # of what was seen, the sum at an earlier share
    for now in shares:
        if now <= share:
            left = share - start
            spread = sqrt(max(0.0, (now - start) * (share - now) / left)) if left else 0.0
            before = before + (now - start) * (seen - before) / (left or 1.0) + spread * noise()
            start = now
            yield before / sqrt(now)
        else:
            after = after + (now - at) * trend + sqrt(now - at) * noise()
            at = now
            yield after / sqrt(now)
