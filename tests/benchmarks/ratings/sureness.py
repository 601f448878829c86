"""How often a rank is called sure among equals, and what is said on thin evidence.

Tournaments are those of `coverage`: all pairs meet on each prompt, and answers are lucky on some.
An interval that is not given is counted apart: it neither holds the truth nor misses it.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.leaderboard import ranks
from projections.ratings.bradley_terry.rate import rate
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row, between, stated
from tests.support.builders.battles import draw_tournaments, truth

SEED: Final = 2026  # of all that is drawn
_N_BOARDS: Final = 1_000
_PLAIN: Final = BradleyTerryParameters()
_SIZES: Final = ((4, 143), (8, 100), (20, 200))
_GAPS: Final = (0.0, 0.15, 0.3, 0.6)  # logits of the first over all others: 0, 26, 52, 104 Elo
_FEW_PROMPTS: Final = (3, 5, 6, 10, 20, 100)
_NEWCOMERS: Final = (1, 2, 3, 5, 6, 10)
_N_OLD_PROMPTS: Final = 150  # on each, the 6 pairs of 4 entrants: 900 battles


class Held(NamedTuple):
    """Intervals that held the truth, and all that there were, of so many ratings."""

    n_held: int
    n_given: int
    n_ratings: int

    @property
    def share(self) -> float:
        """The share of intervals that held the truth; NaN without any."""
        return self.n_held / self.n_given if self.n_given else np.nan


def ranked_share(drawn: Iterable[Battles]) -> float:
    """Return the share of boards on which somebody is surely better than another."""
    return float(np.mean([(ranks(rate(each, _PLAIN))[0] > 1).any() for each in drawn]))


def first_share(drawn: Iterable[Battles]) -> float:
    """Return the share of boards on which the first entrant is surely the best."""
    return float(np.mean([ranks(rate(each, _PLAIN))[1][0] == 1 for each in drawn]))


def held(drawn: Iterable[Battles], true: Floats, *, who: slice = slice(None)) -> Held:
    """Count the intervals that hold the truth, (n_entrants,), of some entrants."""
    rated = [rate(each, _PLAIN) for each in drawn]
    low = np.array([each.lower[who] for each in rated])
    high = np.array([each.upper[who] for each in rated])
    given = ~np.isnan(low)
    holds = (low <= true[who]) & (true[who] <= high)
    return Held(int(holds.sum()), int(given.sum()), given.size)


def spaced(n_entrants: int) -> Floats:
    """Return strengths in logits, from -0.6 to 0.6."""
    return np.linspace(-0.6, 0.6, n_entrants)


def newcomers(n_boards: int, n_prompts: int) -> Iterator[Battles]:
    """Yield boards of four entrants and one as strong as the third, met by one on each prompt."""
    rng = np.random.default_rng(SEED)
    strengths = spaced(4)
    drawn = draw_tournaments(
        n_boards, n_prompts=_N_OLD_PROMPTS, strengths=np.append(strengths, strengths[-2])
    )
    for each in drawn:
        yield _thinned(each, n_prompts, rng)


def _thinned(battles: Battles, n_prompts: int, rng: np.random.Generator) -> Battles:
    """Leave the last entrant one battle on each of the first prompts."""
    opponent = rng.integers(4, size=_N_OLD_PROMPTS)[battles.cluster]
    is_old = battles.b < 4  # the newcomer is the fifth
    return battles.take(is_old | ((battles.cluster < n_prompts) & (battles.a == opponent)))


def measure(bench: Bench) -> Iterator[Row]:
    """Rate tournaments whose truth is known."""
    n_boards = bench.scaled(_N_BOARDS, at_least=2)
    yield from _of_ranks(n_boards)
    yield from _of_thin_evidence(n_boards)
    yield from _of_newcomers(n_boards)


def _of_ranks(n_boards: int) -> Iterator[Row]:
    for n_entrants, n_prompts in _SIZES:
        size = f"{n_entrants} entrants, {n_prompts} prompts"
        for gap in _GAPS:
            strengths = np.where(np.arange(n_entrants) == 0, gap, 0.0)
            drawn = draw_tournaments(n_boards, n_prompts=n_prompts, strengths=strengths)
            if gap:
                share, name = first_share(drawn), f"{gap:g} logits ahead, surely first"
                yield stated(f"{name}: {size}", f"{share:.1%}", share)
            else:
                share = ranked_share(drawn)
                asked = between(0.03, 0.06)
                yield stated(
                    f"equals, somebody surely better: {size}", f"{share:.1%}", share, asked
                )


def _of_thin_evidence(n_boards: int) -> Iterator[Row]:
    for n_entrants in (4, 6, 10):
        strengths = spaced(n_entrants)
        true = truth(strengths=strengths)
        for n_prompts in _FEW_PROMPTS:
            drawn = draw_tournaments(n_boards, n_prompts=n_prompts, strengths=strengths)
            found = held(drawn, true)
            size = f"{n_entrants} entrants, {n_prompts} prompts"
            yield _of_held(f"intervals that hold the truth: {size}", found, highest=0.97)


def _of_newcomers(n_boards: int) -> Iterator[Row]:
    true = truth(strengths=spaced(4))
    true = np.append(true, true[-2])
    for n_prompts in _NEWCOMERS:
        found = held(newcomers(n_boards, n_prompts), true, who=slice(-1, None))
        yield _of_held(f"a newcomer on {n_prompts} prompts among 900 battles", found, highest=1.0)


def _of_held(name: str, found: Held, *, highest: float) -> Row:
    """State coverage; no interval at all asks for nothing."""
    if not found.n_given:
        return stated(name, "no interval", 0.0)
    figure = f"{found.share:.1%} of {found.n_given:,} of {found.n_ratings:,}"
    return stated(name, figure, found.share, between(0.93, highest))
