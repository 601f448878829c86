"""Simulated tournaments that are looked at in waves, and what the looks decide.

Each prompt has an answer of every entrant, better or worse than the entrant is (standard deviation
0.75 logits), and of every pair something that is peculiar to it (0.5). A judge prefers the answer
shown first by 0.3 logits. Both orders are asked, and about a sixth of the verdicts are ties.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.boundaries import Schedule
from projections.ratings.bradley_terry.comparisons import differences, pairs
from projections.ratings.bradley_terry.rate import rate, rate_points
from projections.ratings.looks import Contest, look_at
from projections.student import critical_value

SEED: Final = 2026  # of all that is drawn
N_PROMPTS: Final = 143
FOUR_LOOKS: Final = (0.25, 0.5, 0.75, 1.0)
LOGIT: Final = 400 / np.log(10)  # Elo points
N_DRAWS: Final = 20_000  # fewer than in earnest, as there are many looks
_TIES: Final = 0.35
Design: TypeAlias = Callable[[Battles], Collection[Contest]]
"""Which pairs of a tournament are compared."""
_MANY_PROMPTS: Final = 20_000


class Seen(NamedTuple):
    """What the looks at a tournament came to."""

    decided: frozenset[Contest]  # the better one first
    futile: frozenset[frozenset[str]]
    asked: Battles
    widening: float


def names(n_entrants: int) -> tuple[str, ...]:
    """Return sorted names of entrants."""
    return tuple(f"e{number:02}" for number in range(n_entrants))


def simulated(
    strengths: Floats,
    rng: np.random.Generator,
    *,
    n_prompts: int = N_PROMPTS,
    slot: float = 0.3,
    is_certain: bool = False,
) -> Battles:
    """Draw a tournament where all pairs meet on each prompt.

    Args:
        strengths: (n,) logits.
        rng: Draws it.
        n_prompts: Of the bank.
        slot: By how much the answer shown first is preferred, in logits.
        is_certain: Each score is what it is on average over verdicts.
    """
    a, b = np.triu_indices(len(strengths), 1)
    answers = strengths + rng.normal(scale=0.75, size=(n_prompts, len(strengths)))
    lead = answers[:, a] - answers[:, b] + rng.normal(scale=0.5, size=(n_prompts, len(a)))
    verdict = _expected if is_certain else _drawn
    score = (verdict(lead + slot, rng) + verdict(lead - slot, rng)) / 2
    return Battles.by_score(
        names(len(strengths)),
        a=np.tile(a, n_prompts),
        b=np.tile(b, n_prompts),
        score=score.ravel(),
        cluster=np.repeat(np.arange(n_prompts), len(a)),
        weight=np.ones(score.size),
    )


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


def all_pairs(battles: Battles) -> tuple[Contest, ...]:
    """Return all pairs of entrants."""
    return tuple(Contest(a, b) for a, b in combinations(battles.entrants, 2))


def with_baseline(battles: Battles) -> tuple[Contest, ...]:
    """Return the pairs with the first entrant."""
    return tuple(pair for pair in all_pairs(battles) if pair.a == battles.entrants[0])


def looked_at(
    battles: Battles,
    contests: Collection[Contest],
    shares: Sequence[float] = FOUR_LOOKS,
    *,
    stops_futile: bool = True,
    n_draws: int = N_DRAWS,
) -> Seen:
    """Look at a tournament after each share of its prompts, and ask stopped pairs no more."""
    met = [*contests]
    prompts = battles.cluster.max() + 1
    pair_of = _places(battles, met)
    is_open, is_decided = np.ones((2, len(met)), dtype=np.bool_)
    is_decided[:] = False
    is_asked = np.zeros(len(battles), dtype=np.bool_)
    decided, critical, widening, before = list[Contest](), list[float](), 1.0, 0
    for share in shares:
        until = round(share * prompts)
        in_wave = (battles.cluster >= before) & (battles.cluster < until) & (pair_of >= 0)
        is_asked |= in_wave & is_open[pair_of]
        undecided = [pair for pair, done in zip(met, is_decided, strict=True) if not done]
        look = look_at(
            battles.take(is_asked), undecided, Schedule(shares, critical), n_draws=n_draws
        )
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
    rows = pairs(rate(battles.by_verdicts("half"), BradleyTerryParameters()))
    return frozenset(Contest(row.entrant_a, row.entrant_b) for row in rows if (row.low or 0) > 0)


def wrong(decided: Collection[Contest], strengths: Floats) -> Iterator[Contest]:
    """Yield the pairs whose first entrant is not the stronger."""
    strength = dict(zip(names(len(strengths)), strengths.tolist(), strict=True))
    for pair in decided:
        if strength[pair.a] <= strength[pair.b]:
            yield pair


def equals(n_entrants: int) -> Floats:
    """Return the strengths of equals."""
    return np.zeros(n_entrants)


def blocks(n_entrants: int) -> Floats:
    """Return the strengths of two blocks of equals, 300 Elo points apart."""
    return np.repeat([0.0, 300 / LOGIT], n_entrants // 2)


def false_share(
    strengths: Floats, n: int, *, stops_futile: bool, design: Design = all_pairs
) -> float:
    """Return the share of tournaments where some look decides that equals differ."""
    rng = np.random.default_rng([SEED, len(strengths)])
    n_wrong = 0
    for _ in range(n):
        battles = simulated(strengths, rng)
        seen = looked_at(battles, design(battles), stops_futile=stops_futile)
        n_wrong += any(wrong(seen.decided, strengths))
    return n_wrong / n


class Spared(NamedTuple):
    """What looks ask and decide: shares of what a tournament in full asks and rightly decides."""

    asked: float
    kept: float
    wrong: float  # the share of tournaments with a wrong decision


def spared(n_entrants: int, sd: float, n: int) -> Spared:
    """Draw strengths with a standard deviation in Elo points; compare with all being asked."""
    rng = np.random.default_rng([SEED, n_entrants, int(sd)])
    asked, n_kept, n_right, n_wrong = list[float](), 0, 0, 0
    for _ in range(n):
        strengths = rng.normal(scale=sd / LOGIT, size=n_entrants)
        battles = simulated(strengths, rng)
        seen, full = looked_at(battles, all_pairs(battles)), decided_in_full(battles)
        right = full - {*wrong(full, strengths)}
        asked.append(len(seen.asked) / len(battles))
        n_kept, n_right = n_kept + len(right & seen.decided), n_right + len(right)
        n_wrong += any(wrong(seen.decided, strengths))
    return Spared(float(np.mean(asked)), n_kept / n_right if n_right else 1.0, n_wrong / n)


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
