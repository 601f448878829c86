"""How often 95 % intervals hold a judge's planted bias: a slot, a length, its own family."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from projections.ratings.bradley_terry.component import ELO
from projections.ratings.judge_bias.figures import Bounded
from projections.ratings.judge_bias.measures import slot_preference, style_effects
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.ratings.judge_bias.several_judges import jury_figures
from tests.benchmarks.bench import Bench
from tests.benchmarks.table import Row, between, stated
from tests.support.builders.juries import FAMILIES, Juror, judged

_N_JURIES: Final = 600
_SEED: Final = 17
_JURY: Final = (
    Juror("claude", own=0.4),
    Juror("human", skill=0.6),
    Juror("gpt", skill=1.4),
)


class _Planted(NamedTuple):
    jury: tuple[Juror, ...]
    true: float
    found: Callable[[JudgedPairs], Bounded]


def measure(bench: Bench) -> Iterator[Row]:
    """Draw juries of known biases, each on five entrants and 100 prompts; seeds 17, 18, ..."""
    for name, planted in _PLANTED.items():
        n = bench.scaled(_N_JURIES, at_least=2)
        held = [_holds(planted, seed) for seed in range(_SEED, _SEED + n)]
        share = float(np.mean(held))
        figure = f"{share:.1%} +- {1.96 * np.sqrt(share * (1 - share) / n):.1%}"
        asked = between(0.93, 0.97)
        yield stated(f"95 % intervals that hold a judge's bias: {name}", figure, share, asked)


def _holds(planted: _Planted, seed: int) -> bool:
    found = planted.found(judged(np.random.default_rng(seed), planted.jury))
    assert found.low is not None
    assert found.high is not None
    return found.low <= planted.true <= found.high


def _slot(pairs: JudgedPairs) -> Bounded:
    found = slot_preference(pairs)
    return Bounded(found.value, found.low, found.high)


def _length(pairs: JudgedPairs) -> Bounded:
    (found,) = (each for each in style_effects(pairs).coefficients if each.feature == "length")
    assert found.lower is not None
    assert found.upper is not None
    return Bounded(*(each / found.deviation for each in (found.beta, found.lower, found.upper)))


def _own(pairs: JudgedPairs) -> Bounded:
    (figure,) = (
        each
        for each in jury_figures(pairs, FAMILIES)["claude"]
        if each.measure == "self-preference"
    )
    return Bounded(figure.value, figure.ci95_low, figure.ci95_high)


_PLANTED: Final[Mapping[str, _Planted]] = {
    "always A with probability 0.2": _Planted((Juror(says_a=0.2),), 0.2, _slot),
    "longer, slope 1": _Planted((Juror(slope=1.0),), 1.0, _length),
    "own family, 0.4 logits, in a jury of three": _Planted(_JURY, 0.4 * ELO, _own),
}
