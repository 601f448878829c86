"""A judge's battles, with human scores where people voted on the same battles.

A judge is corrected as if the battles voted on were a random sample of those judged. Votes on the
first prompts, on two entrants, or on pairs that look close, are not: the judge's errors there need
not be its errors elsewhere. So it is tested whether they look like one.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import TIE, Battles, battles_of
from projections.battles.soft_scores import Meeting, named_battles
from projections.intervals import Floats
from projections.tournament.settlement import Settlement


@dataclass(frozen=True)
class VotedBattles:
    """A judge's battles, with people's scores where they voted.

    Attributes:
        judged: Of n battles; every cluster is a prompt.
        human: (n,) the mean score of a by people's votes; NaN without one.
        n_votes: How many votes that is.
        n_unmatched: Votes on what the judge has no verdict about, which are not used.
    """

    judged: Battles
    human: Floats
    n_votes: int
    n_unmatched: int

    @property
    def has_vote(self) -> NDArray[np.bool_]:
        """Whether people voted on each battle, (n,)."""
        return ~np.isnan(self.human)

    @property
    def n_prompts(self) -> int:
        """On how many prompts people voted."""
        return len(np.unique(self.judged.cluster[self.has_vote]))

    def prompts_voted_on(self) -> NDArray[np.int64]:
        """Return on how many prompts people voted about each entrant, (n_entrants,)."""
        n, voted = len(self.judged.entrants), self.judged.take(self.has_vote)
        met, prompt = np.concatenate((voted.a, voted.b)), np.tile(voted.cluster, 2)
        width = int(prompt.max(initial=-1)) + 1
        return np.bincount(np.unique(met * width + prompt) // width, minlength=n).astype(np.int64)

    @property
    def correlation(self) -> float:
        """Of the judge's scores with people's, over the battles voted on; NaN if one is constant.

        Pairs have no order: so each counts from both sides, and the mean score is 1/2.
        """
        judge, human = self.judged.score[self.has_vote] - 0.5, self.human[self.has_vote] - 0.5
        product = float(np.sqrt((judge**2).sum() * (human**2).sum()))
        return float((judge * human).sum() / product) if product else np.nan


def with_votes(
    judged: Battles, votes: Battles, same: Mapping[Hashable, Hashable] | None = None
) -> VotedBattles:
    """Look up people's votes on what a judge judged: same prompt id, same two entrants.

    Several votes on a battle become their weighted mean. Where the judge's orders count each, a
    vote is on both.

    Args:
        judged: What the judge judged.
        votes: What people said.
        same: By a prompt's id that of the first prompt of the same text, if known.
    """
    given: dict[Meeting, list[tuple[str, int]]] = defaultdict(list)
    for vote, a, meeting in named_battles(votes):
        given[meeting].append((a, vote))
    human, met = np.full(len(judged), np.nan), set[Meeting]()
    for place, first, meeting in named_battles(judged):
        if meeting in given:
            met.add(meeting)
            scores = [
                votes.score[vote] if a == first else 1 - votes.score[vote]
                for a, vote in given[meeting]
            ]
            human[place] = fmean(scores, [votes.weight[vote] for _, vote in given[meeting]])
    n_votes = sum(len(given[meeting]) for meeting in met)
    return VotedBattles(
        judged.grouped(same or {}), human, n_votes, n_unmatched=len(votes) - n_votes
    )


def judged_battles(settlements: Iterable[Settlement]) -> Battles:
    """Return the battles that a judge judged, by verdicts; their clusters are prompts' ids.

    A pair on which a panel has no majority is half a win for each: left out, the pairs that judges
    find hard would be missing. Identical responses are left out: nobody votes on them, and votes
    are to be a sample of these.
    """
    battles = battles_of(
        (
            settlement
            for settlement in settlements
            if (settlement.outcome is not None or settlement.share is not None)
            and not (settlement.match and settlement.match.is_identical)
        ),
        attrgetter("prompt_id"),
    )
    return replace(battles, score=np.where(np.isnan(battles.score), TIE, battles.score))


def both_judged(
    settlements: Iterable[Settlement],
    others: Iterable[Settlement],
    same: Mapping[Hashable, Hashable] | None = None,
) -> VotedBattles:
    """Return a judge's battles, with another judge's outcomes as the votes.

    A prompt counts once no pair of it is pending: else pairs that are sent first, or that tie
    unasked, would stand for all. Identical responses count, as in either judge's own ratings.

    Args:
        settlements: By the judge that is corrected.
        others: By the judge whose outcomes are the truth.
        same: By a prompt's id that of the first prompt of the same text, if known.
    """
    other = [*others]
    pending = {settlement.prompt_id for settlement in other if settlement.status == "pending"}
    done = (settlement for settlement in other if settlement.prompt_id not in pending)
    judged, votes = (
        battles_of(group, attrgetter("prompt_id")).by_verdicts("half")
        for group in (settlements, done)
    )
    return with_votes(judged, votes, same)


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


def sampling_of(
    battles: VotedBattles, *, by_prompt: bool = False, is_random: bool = False
) -> VoteSampling:
    """Compare the battles voted on with random samples of as many of all that were judged.

    With `by_prompt` samples are of whole prompts, as a judge is asked on a share of them. With
    `is_random` they are known to be such a sample: nothing is compared, and nothing doubted.

    Four statistics are compared with those of random samples: Pearson's chi-square of votes by
    prompt, by two entrants and by the judge's outcome, and how early the prompts are. The smallest
    of their p values is compared with that of each sample (Westfall and Young 1993), so all are
    fair at once. Several battles of two entrants on a prompt, as of both orders, are one.
    """
    met = _Meetings.of(battles)
    if by_prompt:
        on_prompt = np.bincount(met.prompt, met.is_voted) > 0
        met = met._replace(is_voted=on_prompt[met.prompt])
    n_voted = int(met.is_voted.sum())
    voted_prompts, is_open = np.unique(met.prompt[met.is_voted]), met.outcome == _NO_WINNER
    doubts, expected_prompts = (
        ((), float(len(voted_prompts))) if is_random else _compared(met, by_prompt=by_prompt)
    )
    names, n_pairs = battles.judged.entrants, np.bincount(met.pair)
    n_on_pair = np.bincount(met.pair[met.is_voted], minlength=len(n_pairs))
    expected = n_pairs * n_voted / len(met.pair)
    most = int((n_on_pair - expected).argmax())
    return VoteSampling(
        doubts=doubts,
        without_vote=tuple(
            name
            for name, n in zip(names, battles.prompts_voted_on().tolist(), strict=True)
            if not n
        ),
        n_voted=n_voted,
        n_prompts=len(np.unique(met.prompt)),
        prompts=tuple((1 + voted_prompts).tolist()),
        expected_prompts=expected_prompts,
        most=(names[most // len(names)], names[most % len(names)]),
        n_most=int(n_on_pair[most]),
        expected_most=float(expected[most]),
        no_winner=(float(is_open[met.is_voted].mean()), float(is_open.mean())),
    )


def _compared(met: "_Meetings", *, by_prompt: bool) -> tuple[tuple[Doubt, ...], float]:
    """Return what is doubted of those voted on, and the mean number of prompts of samples."""
    n_voted, rng = int(met.is_voted.sum()), np.random.default_rng(_SEED)
    unit = met.prompt if by_prompt else np.arange(len(met.prompt))
    n_units, n_chosen = int(unit.max()) + 1, len(np.unique(unit[met.is_voted]))
    samples = [
        np.flatnonzero(np.isin(unit, rng.choice(n_units, n_chosen, replace=False)))
        if by_prompt
        else rng.choice(n_units, n_voted, replace=False)
        for _ in range(_N_DRAWS)
    ]
    statistics = [met.statistics(sample) for sample in (np.flatnonzero(met.is_voted), *samples)]
    early, *others = _adjusted_p(np.array(statistics)) <= _LEVEL
    others[0] |= early  # of the prompts, too
    doubts = tuple(doubt for doubt, is_so in zip(_DOUBTS, others, strict=True) if is_so)
    return doubts, float(np.mean([len(np.unique(met.prompt[sample])) for sample in samples]))


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
        score = np.where(judged.a < judged.b, judged.observed, 1.0 - judged.observed)
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
    counts = np.bincount(group[chosen], minlength=len(n))
    return float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum())


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
