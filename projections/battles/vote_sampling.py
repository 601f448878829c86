"""Test whether the battles that people voted on look like a random sample of those judged.

A judge is corrected as if they were. Votes on the first prompts, on two entrants, or on pairs that
look close, are not: the judge's errors there need not be its errors elsewhere.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.voted import VotedBattles
from projections.intervals import Floats

Doubt: TypeAlias = Literal["prompts", "entrants", "outcomes"]

_LEVEL: Final = 0.05
_SEED: Final = 20260427
_N_DRAWS: Final = 999
_DECIDED: Final = 0.25  # whoever takes at least 1 - this of a battle won it


class VoteSampling(NamedTuple):
    """In what the battles voted on differ from a random sample of as many.

    doubts: Significant at 5 %, all tests together. expected_prompts: The mean of random samples.
    most: The two entrants with the most votes beyond what is expected. no_winner: Of the battles
    voted on, and of all, the share without a winner by the judge.
    """

    doubts: tuple[Doubt, ...]
    without_vote: tuple[str, ...]  # entrants
    n_voted: int
    n_prompts: int  # that were judged
    prompts: tuple[int, ...]  # numbers of those voted on, from 1 in the order of the battles
    expected_prompts: float
    most: tuple[str, str]
    n_most: int
    expected_most: float
    no_winner: tuple[float, float]


def sampling_of(battles: VotedBattles) -> VoteSampling:
    """Compare the battles voted on with random samples of as many of all that were judged.

    Four statistics are compared with those of random samples: Pearson's chi-square of votes by
    prompt, by two entrants and by the judge's outcome, and how early the prompts are. The smallest
    of their p values is compared with that of each sample (Westfall and Young 1993), so all are
    fair at once. Several battles of two entrants on a prompt, as of both orders, are one.
    """
    met = _Meetings.of(battles)
    n_voted = int(met.is_voted.sum())
    rng = np.random.default_rng(_SEED)
    samples = [rng.choice(len(met.prompt), n_voted, replace=False) for _ in range(_N_DRAWS)]
    found = [met.statistics(each) for each in (np.flatnonzero(met.is_voted), *samples)]
    early, *others = _adjusted_p(np.array(found)) <= _LEVEL
    doubted = dict(zip(("prompts", "entrants", "outcomes"), others, strict=True))
    doubted["prompts"] |= early
    names, n_pairs = battles.judged.entrants, np.bincount(met.pair)
    n_on_pair = np.bincount(met.pair[met.is_voted], minlength=len(n_pairs))
    expected = n_pairs * n_voted / len(met.pair)
    most = int((n_on_pair - expected).argmax())
    voted_prompts, is_open = np.unique(met.prompt[met.is_voted]), met.outcome == _NO_WINNER
    return VoteSampling(
        doubts=tuple(each for each in _DOUBTS if doubted[each]),
        without_vote=tuple(
            name
            for name, n in zip(names, battles.prompts_voted_on().tolist(), strict=True)
            if not n
        ),
        n_voted=n_voted,
        n_prompts=len(np.unique(met.prompt)),
        prompts=tuple((1 + voted_prompts).tolist()),
        expected_prompts=float(np.mean([len(np.unique(met.prompt[each])) for each in samples])),
        most=(names[most // len(names)], names[most % len(names)]),
        n_most=int(n_on_pair[most]),
        expected_most=float(expected[most]),
        no_winner=(float(is_open[met.is_voted].mean()), float(is_open.mean())),
    )


_DOUBTS: Final[tuple[Doubt, ...]] = ("prompts", "entrants", "outcomes")
_NO_WINNER: Final = 1  # between 0: the second of two names won, and 2: the first did


class _Meetings(NamedTuple):
    """Two entrants on a prompt, n times: prompt, pair, outcome and whether somebody voted, (n,)."""

    prompt: NDArray[np.intp]
    pair: NDArray[np.intp]
    outcome: NDArray[np.intp]
    is_voted: NDArray[np.bool_]

    @classmethod
    def of(cls, battles: VotedBattles) -> "_Meetings":
        judged, n = battles.judged, len(battles.judged.entrants)
        pair = np.minimum(judged.a, judged.b) * n + np.maximum(judged.a, judged.b)
        score = np.where(judged.a < judged.b, judged.score, 1.0 - judged.score)
        key, number = np.unique(judged.cluster * n * n + pair, return_inverse=True)
        mean = np.bincount(number, score) / np.bincount(number)
        _, prompt = np.unique(key // (n * n), return_inverse=True)
        outcome = 1 + (mean >= 1.0 - _DECIDED).astype(np.intp) - (mean <= _DECIDED)
        is_voted = np.bincount(number, battles.has_vote) > 0
        return cls(prompt.astype(np.intp), key % (n * n), outcome.astype(np.intp), is_voted)

    def statistics(self, chosen: NDArray[np.intp]) -> tuple[float, float, float, float]:
        """Return how far chosen meetings are from all: early or late, then three chi-squares."""
        return (
            abs(float(self.prompt[chosen].mean() - self.prompt.mean())),
            _chi_square(self.prompt, chosen),
            _chi_square(self.pair, chosen),
            _chi_square(self.outcome, chosen),
        )


def _chi_square(group: NDArray[np.intp], chosen: NDArray[np.intp]) -> float:
    """Return Pearson's chi-square of the chosen by group, up to a factor."""
    n = np.bincount(group)
    expected = n * len(chosen) / len(group)
    found = np.bincount(group[chosen], minlength=len(n))
    return float(((found - expected) ** 2 / np.maximum(expected, 1e-300)).sum())


def _adjusted_p(statistics: Floats) -> Floats:
    """Return the p of the first row for each statistic, all tested at once, (k,).

    Args:
        statistics: (1 + n_draws, k), the larger the further from a random sample.
    """
    rounded = np.round(statistics, 9)  # equal but for rounding is equal
    ordered = np.sort(rounded, axis=0)
    n_below = np.array(
        [np.searchsorted(column, own) for column, own in zip(ordered.T, rounded.T, strict=True)]
    )
    p = 1.0 - n_below.T / len(statistics)
    smallest = p.min(axis=1)
    return np.array([(smallest <= own).mean() for own in p[0]])
