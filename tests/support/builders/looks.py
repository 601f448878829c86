"""Simulated tournaments that are looked at in waves, and what the looks decide.

Each prompt has an answer of every entrant, better or worse than the entrant is (standard deviation
0.75 logits), and of every pair something that is peculiar to it (0.5). A judge prefers the answer
shown first by 0.3 logits. Both orders are asked, and about a sixth of the verdicts are ties.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, without_slot_effect
from projections.intervals import Floats, critical_value
from projections.ratings.boundaries import Schedule
from projections.ratings.bradley_terry.leaderboard import differences, pairs
from projections.ratings.bradley_terry.rate import rate, rate_points
from projections.ratings.looks import Contest, look_at, waves_asked
from projections.tournament.designs import ONE_IN_BOTH, drawn_pairs
from tests.support.builders.battles import all_met

SEED: Final = 2026  # of all that is drawn
N_PROMPTS: Final = 143
FOUR_LOOKS: Final = (0.25, 0.5, 0.75, 1.0)
IN_FOUR: Final = Schedule(FOUR_LOOKS)
SOONER: Final = IN_FOUR._replace(futile=0.05)  # as a counterbalanced tournament stops
ANY_LOOKS: Final = Schedule([(look + 1) / 8 for look in range(8)], is_open_ended=True)
LOGIT: Final = 400 / np.log(10)  # Elo points
N_DRAWS: Final = 20_000  # fewer than in earnest, as there are many looks
_TIES: Final = 0.35
_SLOT: Final = 0.3  # by how much the answer shown first is preferred, in logits
Design: TypeAlias = Callable[[Battles], Sequence[Contest]]
"""Which pairs of a tournament are compared."""
_MANY_PROMPTS: Final = 20_000
_N_TRIED: Final = 20  # tournaments, to know about where critical values are
_NEAR: Final = 0.95  # of those


class Seen(NamedTuple):
    """What the looks at a tournament came to."""

    decided: frozenset[Contest]  # the better one first
    futile: frozenset[frozenset[str]]
    asked: Battles
    widening: float


def names(n_entrants: int) -> tuple[str, ...]:
    """Return sorted names of entrants."""
    return tuple(f"e{number:02}" for number in range(n_entrants))


def all_pairs(battles: Battles) -> tuple[Contest, ...]:
    """Return all pairs of entrants."""
    return tuple((a, b) for a, b in combinations(battles.entrants, 2))


def with_baseline(battles: Battles) -> tuple[Contest, ...]:
    """Return the pairs with the first entrant."""
    return tuple(pair for pair in all_pairs(battles) if pair[0] == battles.entrants[0])


def simulated(
    strengths: Floats,
    rng: np.random.Generator,
    *,
    n_prompts: int = N_PROMPTS,
    is_certain: bool = False,
) -> Battles:
    """Draw a tournament where all pairs meet on each prompt, in both orders.

    Args:
        strengths: (n,) logits.
        rng: Draws it.
        n_prompts: Of the bank.
        is_certain: Each score is what it is on average over verdicts.
    """
    by_order = _by_order(strengths, rng, n_prompts=n_prompts, is_certain=is_certain)
    return all_met(names(len(strengths)), np.mean(by_order, axis=0))


def _by_order(
    strengths: Floats,
    rng: np.random.Generator,
    *,
    n_prompts: int = N_PROMPTS,
    is_certain: bool = False,
) -> tuple[Floats, Floats]:
    """Draw what the first of each pair takes where it is shown first, and where second."""
    a, b = np.triu_indices(len(strengths), 1)
    answers = strengths + rng.normal(scale=0.75, size=(n_prompts, len(strengths)))
    lead = answers[:, a] - answers[:, b] + rng.normal(scale=0.5, size=(n_prompts, len(a)))
    verdict = _expected if is_certain else _drawn
    return verdict(lead + _SLOT, rng), verdict(lead - _SLOT, rng)


class Asked(NamedTuple):
    """What is asked of a tournament."""

    contests: Design = all_pairs
    sparse: int | None = None  # so many pairs on each prompt
    counterbalanced: bool = False
    looks: Schedule = IN_FOUR

    def drawn(self, strengths: Floats, rng: np.random.Generator) -> tuple[Battles, Battles]:
        """Draw a tournament: what is asked by the design, and all pairs in both orders."""
        forward, swapped = _by_order(strengths, rng)
        whole = all_met(names(len(strengths)), (forward + swapped) / 2)
        asked = whole
        if self.counterbalanced:
            order = rng.integers(2, size=forward.shape)
            order[rng.random(order.shape) < 1 / ONE_IN_BOTH] = 2
            one_order = all_met(
                names(len(strengths)),
                np.choose(order, (forward, swapped, whole.score.reshape(order.shape))),
            )
            slot = np.array([1, -1, 0], dtype=np.int8)[order.ravel()]
            asked = replace(one_order, slot=slot, weight=1 - np.abs(slot) / 2)
        if self.sparse is not None:
            asked = asked.take(_sparse_places(len(strengths), self.sparse, int(rng.integers(8))))
        contests = self.contests(asked)
        return asked.take(_places(asked, contests) >= 0), whole


ALL_IN_BOTH: Final = Asked()


@cache
def _sparse_places(n_entrants: int, n_pairs: int, seed: int) -> NDArray[np.intp]:
    """Return which battles of a tournament of all pairs a sparse design asks."""
    pairs_met = [*combinations(range(n_entrants), 2)]
    texts = tuple(f"prompt {n}" for n in range(N_PROMPTS))
    drawn = drawn_pairs(names(n_entrants), texts, n_pairs, seed)
    places = [
        n * len(pairs_met) + pairs_met.index(pair) for n, on in enumerate(drawn) for pair in on
    ]
    return np.array(places, dtype=np.intp)


def _expected(lead: Floats, _: np.random.Generator) -> Floats:
    win, lose = 1 / (1 + np.exp(_TIES - lead)), 1 / (1 + np.exp(_TIES + lead))
    return np.asarray(0.5 + (win - lose) / 2)


def _drawn(lead: Floats, rng: np.random.Generator) -> Floats:
    drawn = rng.random(lead.shape)
    win, lose = 1 / (1 + np.exp(_TIES - lead)), 1 / (1 + np.exp(_TIES + lead))
    return np.where(drawn < win, 1.0, np.where(drawn < 1 - lose, 0.5, 0.0))


def true_ratings(strengths: Floats, rng: np.random.Generator) -> Floats:
    """Return what ratings come to with ever more prompts; they are nearer than the strengths."""
    drawn = simulated(strengths, rng, n_prompts=_MANY_PROMPTS, is_certain=True)
    return rate_points(drawn, BradleyTerryParameters()).rating


def looked_at(
    battles: Battles,
    contests: Collection[Contest],
    planned: Schedule = IN_FOUR,
    *,
    stops_futile: bool = True,
) -> Seen:
    """Look at a tournament after each share of its prompts, and ask stopped pairs no more."""
    met = [*contests]
    prompts = battles.cluster.max() + 1
    pair_of = _places(battles, met)
    is_open, is_decided = np.ones((2, len(met)), dtype=np.bool_)
    is_decided[:] = False
    is_asked = np.zeros(len(battles), dtype=np.bool_)
    decided, critical, widening, before = list[Contest](), list[float](), 1.0, 0
    for share in planned.shares:
        until = round(share * prompts)
        in_wave = (battles.cluster >= before) & (battles.cluster < until) & (pair_of >= 0)
        is_asked |= in_wave & is_open[pair_of]
        undecided = [pair for pair, done in zip(met, is_decided, strict=True) if not done]
        seen = without_slot_effect(battles.take(is_asked))
        look = look_at(seen, undecided, planned._replace(critical=critical), n_draws=N_DRAWS)
        critical, before = [*critical, look.critical], until
        widening = max(widening, look.widening)
        decided += look.decided
        is_decided |= _is_among(met, look.decided)
        is_open &= ~is_decided
        if stops_futile:
            is_open &= ~_is_among(met, look.futile)
        if not is_open.any():
            break
    left = {frozenset(pair) for pair, stays in zip(met, is_open, strict=True) if not stays}
    futile = left - {frozenset(pair) for pair in decided}
    return Seen(frozenset(decided), frozenset(futile), battles.take(is_asked), widening)


def _places(battles: Battles, contests: Sequence[Contest]) -> NDArray[np.intp]:
    """Return which contest each battle is of, (n,); -1: none."""
    numbers = {name: number for number, name in enumerate(battles.entrants)}
    table = np.full((len(numbers), len(numbers)), -1, dtype=np.intp)
    for place, (a, b) in enumerate(contests):
        table[[numbers[a], numbers[b]], [numbers[b], numbers[a]]] = place
    return np.asarray(table[battles.a, battles.b])


def _is_among(contests: Sequence[Contest], chosen: Collection[Contest]) -> NDArray[np.bool_]:
    stopped = {frozenset(pair) for pair in chosen}
    return np.array([frozenset(pair) in stopped for pair in contests], dtype=np.bool_)


def decided_in_full(battles: Battles) -> frozenset[Contest]:
    """Return the pairs that are surely different once all is asked, without looks."""
    seen = without_slot_effect(battles)
    rows = pairs(rate(seen.by_verdicts("half"), BradleyTerryParameters()))
    return frozenset((row.entrant_a, row.entrant_b) for row in rows if (row.low or 0) > 0)


def wrong(decided: Collection[Contest], strengths: Floats) -> Iterator[Contest]:
    """Yield the pairs whose first entrant is not the stronger."""
    strength = dict(zip(names(len(strengths)), strengths.tolist(), strict=True))
    for a, b in decided:
        if strength[a] <= strength[b]:
            yield a, b


def equals(n_entrants: int) -> Floats:
    """Return the strengths of equals."""
    return np.zeros(n_entrants)


def blocks(n_entrants: int) -> Floats:
    """Return the strengths of two blocks of equals, 300 Elo points apart."""
    return np.repeat([0.0, 300 / LOGIT], n_entrants // 2)


class FalseShares(NamedTuple):
    """Shares of tournaments where two equals are called different."""

    in_full: float  # all is asked, and rated once
    looks: float  # by some look, futile pairs being asked on


def false_shares(strengths: Floats, n: int, asked: Asked = ALL_IN_BOTH) -> FalseShares:
    """Draw tournaments, and count those where equals are called different, with looks or without.

    What is far from any decision is not decided, and so needs no critical values of its own.
    """
    rng = np.random.default_rng([SEED, len(strengths)])
    far = _far_from_decided(strengths, asked)
    n_wrong = np.zeros(2)
    for _ in range(n):
        battles, _ = asked.drawn(strengths, rng)
        contests = asked.contests(battles)
        t = [_largest(_first(battles, share), contests) for share in asked.looks.shares]
        if t[-1] >= far.in_full:
            n_wrong[0] += any(wrong(decided_in_full(battles), strengths))
        if (np.array(t) >= far.looks).any():
            seen = looked_at(battles, contests, asked.looks, stops_futile=False)
            n_wrong[1] += any(wrong(seen.decided, strengths))
    return FalseShares(*(n_wrong / n).tolist())


def false_share_of_stopped(strengths: Floats, n: int, asked: Asked = ALL_IN_BOTH) -> float:
    """Return the share of those tournaments where futile pairs are stopped."""
    rng = np.random.default_rng([SEED, len(strengths)])
    n_wrong = 0
    for _ in range(n):
        battles, _ = asked.drawn(strengths, rng)
        seen = looked_at(battles, asked.contests(battles), asked.looks)
        n_wrong += any(wrong(seen.decided, strengths))
    return n_wrong / n


class _Far(NamedTuple):
    """The largest |t| below which a tournament in full, and each look, decides nothing."""

    in_full: float
    looks: Floats


def _far_from_decided(strengths: Floats, asked: Asked) -> _Far:
    """Return what is 5 % below the least critical values of some tournaments of the kind.

    Those differ by their covariance, which moves critical values by less.
    """
    rng, found = np.random.default_rng([SEED, len(strengths), 1]), []
    for _ in range(_N_TRIED):
        battles, _ = asked.drawn(strengths, rng)
        contests = asked.contests(battles)
        once = look_at(
            without_slot_effect(battles), contests, Schedule((1.0,)), n_draws=N_DRAWS
        ).critical
        critical = list[float]()
        for share in asked.looks.shares:
            seen = without_slot_effect(_first(battles, share))
            schedule = asked.looks._replace(critical=critical)
            critical = [*critical, look_at(seen, contests, schedule, n_draws=N_DRAWS).critical]
        found.append([once, *critical])
    least = _NEAR * np.min(found, axis=0)
    return _Far(float(least[0]), least[1:])


def _first(battles: Battles, share: float) -> Battles:
    return battles.take(battles.cluster < round(share * N_PROMPTS))


def _largest(battles: Battles, contests: Collection[Contest]) -> float:
    """Return the largest difference over its error; above that of the normal at the same p."""
    ratings = rate(without_slot_effect(battles).by_verdicts("half"), BradleyTerryParameters())
    places = {name: place for place, name in enumerate(ratings.entrants)}
    a, b = np.array([(places[a], places[b]) for a, b in contests if {a, b} <= {*places}]).T
    found = differences(ratings)
    return float(np.nanmax(np.abs(found.points / found.error)[a, b]))


class Spared(NamedTuple):
    """What looks ask and decide: shares of what a tournament in full asks and rightly decides."""

    asked: float
    kept: float
    wrong: float  # the share of tournaments with a wrong decision
    kept_of_design: float  # of what the design in full rightly decides, on the pairs it compares


def spared(n_entrants: int, sd: float, n: int, asked: Asked = ALL_IN_BOTH) -> Spared:
    """Draw strengths with a standard deviation in Elo points; compare with all being asked.

    All are all pairs in both orders; of a baseline, decisions on its pairs.
    """
    rng = np.random.default_rng([SEED, n_entrants, int(sd)])
    n_asked, n_kept, n_right, n_wrong = 0.0, np.zeros(2), np.zeros(2), 0
    for _ in range(n):
        strengths = rng.normal(scale=sd / LOGIT, size=n_entrants)
        battles, whole = asked.drawn(strengths, rng)
        contests = asked.contests(battles)
        seen = looked_at(battles, contests, asked.looks)
        for place, full in enumerate((whole, battles)):
            decided = decided_in_full(full)
            right = decided - {*wrong(decided, strengths)}
            right &= {*contests, *((b, a) for a, b in contests)}
            n_kept[place] += len(right & seen.decided)
            n_right[place] += len(right)
        n_asked += n_queries(seen.asked) / n_queries(whole) / n
        n_wrong += any(wrong(seen.decided, strengths))
    kept = np.where(n_right > 0, n_kept / np.maximum(n_right, 1), 1.0)
    return Spared(n_asked, float(kept[0]), n_wrong / n, float(kept[1]))


def n_queries(battles: Battles) -> int:
    """Count verdicts: one, or two where both orders are asked."""
    return int(np.sum(2 - np.abs(battles.slot)) if np.ndim(battles.slot) else 2 * len(battles))


class Forecast(NamedTuple):
    """How often 90 % intervals of dollars hold what a tournament costs, and their width."""

    holds: float
    width: float  # on average, as a share of the cost


N_PILOT: Final = 50  # prompts, judged before the forecast
COST_SPREAD: Final = 0.43  # standard deviation of the logarithm: 45 % of the mean


def forecast_dollars(n_entrants: int, sd: float, n: int, asked: Asked = ALL_IN_BOTH) -> Forecast:
    """Forecast tournaments from a pilot, and look at them; what a query costs is its prompt's."""
    rng = np.random.default_rng([SEED, n_entrants, int(sd), 3])
    holds, widths = 0, list[float]()
    for _ in range(n):
        strengths = rng.normal(scale=sd / LOGIT, size=n_entrants)
        battles, _ = asked.drawn(strengths, rng)
        usd = rng.lognormal(sigma=COST_SPREAD, size=N_PROMPTS)
        low, high = _dollars_forecast(battles, asked, usd, rng)
        seen = looked_at(battles, asked.contests(battles), asked.looks).asked
        later = seen.take(seen.cluster >= N_PILOT)
        spent = _dollars(_first(battles, N_PILOT / N_PROMPTS), usd) + _dollars(later, usd)
        holds += low <= spent <= high
        widths.append((high - low) / spent)
    return Forecast(holds / n, float(np.mean(widths)))


def _dollars_forecast(
    battles: Battles, asked: Asked, usd: Floats, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval, by the pilot's verdicts and what they cost."""
    pilot, contests = _first(battles, N_PILOT / N_PROMPTS), asked.contests(battles)
    share = N_PILOT / N_PROMPTS
    n_waves = waves_asked(without_slot_effect(pilot), contests, asked.looks, share)
    wave = np.searchsorted(np.round(np.array(FOUR_LOOKS) * N_PROMPTS), battles.cluster, "right")
    pair, is_later = _places(battles, contests), battles.cluster >= N_PILOT
    n_asked = np.zeros(len(next(iter(n_waves.values()))))
    for place, contest in enumerate(contests):
        for number in range(len(FOUR_LOOKS)):
            chosen = battles.take((pair == place) & (wave == number) & is_later)
            n_asked += n_queries(chosen) * (n_waves[frozenset(contest)] > number)
    known = usd[:N_PILOT]
    error = known.std() / known.mean() * np.sqrt(1 / N_PILOT + 1 / (N_PROMPTS - N_PILOT))
    noise = 1 + error * rng.standard_normal(len(n_asked))
    low, high = np.quantile(_dollars(pilot, usd) + n_asked * known.mean() * noise, (0.05, 0.95))
    return float(low), float(high)


def _dollars(battles: Battles, usd: Floats) -> float:
    slot = np.broadcast_to(battles.slot, len(battles))
    return float(((2 - np.abs(slot)) * usd[battles.cluster]).sum())


class Covered(NamedTuple):
    """How often intervals of differences hold the truth: of each pair, and of all at once."""

    of_pairs: Floats
    of_all: float


def covered(strengths: Floats, n: int) -> Covered:
    """Look at tournaments of planted strengths, and count the widened intervals that hold."""
    rng = np.random.default_rng([SEED, len(strengths), 4])
    rating = true_ratings(strengths, rng)
    truth = dict(zip(simulated(strengths, rng).entrants, rating.tolist(), strict=True))
    upper = np.triu_indices(len(strengths), 1)
    true = (rating[:, None] - rating)[upper]
    holds, at_once = list[NDArray[np.bool_]](), 0
    for _ in range(n):
        battles = simulated(strengths, rng)
        seen = looked_at(battles, all_pairs(battles))
        ratings = rate(seen.asked.by_verdicts("half"), BradleyTerryParameters())
        ratings = ratings.widened(seen.widening)
        found = differences(ratings)
        reach = critical_value(0.95, found.freedom) * found.error
        holds.append(np.abs(found.points[upper] - true) <= reach[upper])
        at_once += all(
            row.low is not None
            and row.high is not None
            and row.low <= truth[row.entrant_a] - truth[row.entrant_b] <= row.high
            for row in pairs(ratings)
        )
    return Covered(np.mean(holds, axis=0), at_once / n)
