"""The alternative annotator test: may a judge replace one of the people who voted?

Each annotator is left out in turn. The judge and the annotator are compared by how often each
agrees with the others. The judge wins against an annotator if its advantage probability is
significantly above the annotator's, less a margin epsilon, which says how much agreement the
judge's lower price is worth. It may replace an annotator if it wins against half of them or more
(Calderon, Reichart and Dror 2025, arXiv 2501.10970).

The paper takes items as independent, with a t-test. Battles on one prompt are not: here they are
one cluster. With one battle a prompt the two tests are the same.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil, sqrt
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from projections.intervals import FEWEST_CLUSTERS, RatioTerms, estimate_ratio, two_sided_p

GOLD: Final = "gold"
"""The annotator of labels that name none: they are the truth, and not a person to be replaced."""

EPSILONS: Final = (0.1, 0.15, 0.2)  # of crowd workers, skilled annotators, experts (section 3.3)
FEWEST_ANNOTATORS: Final = 3
FEWEST_BATTLES: Final = 30  # of each annotator, with another's vote and the judge's
_FALSE_DISCOVERIES: Final = 0.05  # the rate that Benjamini-Yekutieli's procedure allows
_ENOUGH: Final = 0.5  # the winning rate with which a judge passes
_MOST_TIMES: Final = 50  # times the votes there are; a judge that needs more is hardly helped
_NO_SPREAD: Final = 1e-12

Votes = Mapping[Hashable, str]
"""What a judge or an annotator said, by battle."""


class LeftOut(NamedTuple):
    """The judge against one annotator, by the battles on which others voted, too."""

    annotator: str
    n: int  # battles
    n_prompts: int
    judge_advantage: float  # the share on which the judge agrees with the others no less
    annotator_advantage: float  # likewise the annotator
    standard_error: float  # of the difference, clustered by prompt

    def p(self, epsilon: float, times: float = 1.0) -> float:
        """Return the one-sided p of: the judge's advantage is at most the annotator's - epsilon.

        Args:
            epsilon: The margin.
            times: How many times the votes there are, if more were like them.
        """
        margin = self.judge_advantage - self.annotator_advantage + epsilon
        error = self.standard_error / sqrt(times)
        if error < _NO_SPREAD:
            return 0.0 if margin > _NO_SPREAD else 1.0
        freedom = np.array(self.n_prompts * times - 1)
        half = float(two_sided_p(np.array(abs(margin) / error), freedom)) / 2
        return half if margin > 0 else 1 - half


class AtEpsilon(NamedTuple):
    """The result with one margin."""

    epsilon: float
    winning_rate: float  # the share of annotators against whom the judge wins
    n_more: int | None  # about how many more votes would let it pass; None: they would not

    @property
    def is_passed(self) -> bool:
        """Whether the judge may replace an annotator."""
        return self.winning_rate >= _ENOUGH


class AlternativeAnnotatorTest(NamedTuple):
    """The result of the test, or what it lacks."""

    annotators: tuple[LeftOut, ...]  # those with enough battles
    results: tuple[AtEpsilon, ...]  # by margin, the smallest first; empty if votes are lacking
    n_lacking: int = 0  # votes until there can be a test
    n_by_annotator: tuple[tuple[str, int], ...] = ()  # battles that count, of everybody

    @property
    def advantage(self) -> float | None:
        """The average advantage probability, by which judges compare; None without a test."""
        return (
            fmean(annotator.judge_advantage for annotator in self.annotators)
            if self.results
            else None
        )

    @property
    def is_short_of_prompts(self) -> bool:
        """Whether there are votes enough, but on too few prompts."""
        return not self.results and not self.n_lacking

    @property
    def smallest_margin(self) -> float | None:
        """The smallest margin with which the judge passes; None if with none."""
        return next((result.epsilon for result in self.results if result.is_passed), None)


def alternative_annotator_test(
    judge: Votes, people: Mapping[str, Votes], prompts: Mapping[Hashable, Hashable]
) -> AlternativeAnnotatorTest:
    """Compare a judge with each annotator by their agreement with the other annotators.

    Args:
        judge: What the judge said.
        people: What each annotator said.
        prompts: The prompt of each battle.
    """
    shared = {name: _shared(name, judge, people) for name in people}
    counts = tuple((name, len(battles)) for name, battles in shared.items())
    enough = {name: battles for name, battles in shared.items() if len(battles) >= FEWEST_BATTLES}
    left_out = [
        _left_out(name, judge, people, battles, prompts) for name, battles in enough.items()
    ]
    tested = tuple(annotator for annotator in left_out if annotator.n_prompts >= FEWEST_CLUSTERS)
    if len(tested) < FEWEST_ANNOTATORS:
        return AlternativeAnnotatorTest((), (), _n_lacking(counts), counts)
    results = tuple(
        AtEpsilon(epsilon, _winning_rate(tested, epsilon), _n_more(tested, epsilon))
        for epsilon in EPSILONS
    )
    return AlternativeAnnotatorTest(tested, results, n_by_annotator=counts)


def _shared(name: str, judge: Votes, people: Mapping[str, Votes]) -> list[Hashable]:
    """Return the battles of an annotator on which the judge and someone else said something."""
    others = [said for other, said in people.items() if other != name]
    return [
        battle
        for battle in people[name]
        if battle in judge and any(battle in said for said in others)
    ]


def _left_out(
    name: str,
    judge: Votes,
    people: Mapping[str, Votes],
    battles: Sequence[Hashable],
    prompts: Mapping[Hashable, Hashable],
) -> LeftOut:
    others = [said for other, said in people.items() if other != name]
    agreed = [
        [said[battle] for said in others if battle in said] for battle in battles
    ]  # what the others said
    by_judge = [said.count(judge[battle]) for battle, said in zip(battles, agreed, strict=True)]
    by_annotator = [
        said.count(people[name][battle]) for battle, said in zip(battles, agreed, strict=True)
    ]
    judge_wins = np.greater_equal(by_judge, by_annotator).astype(float)
    annotator_wins = np.greater_equal(by_annotator, by_judge).astype(float)
    clusters = [prompts[battle] for battle in battles]
    terms = RatioTerms(judge_wins - annotator_wins, np.ones(len(battles)))
    return LeftOut(
        name,
        len(battles),
        len({*clusters}),
        float(judge_wins.mean()),
        float(annotator_wins.mean()),
        estimate_ratio(terms, clusters, "plain").standard_error or 0.0,
    )


def _n_lacking(counts: Sequence[tuple[str, int]]) -> int:
    """Return how many votes the fewest annotators lack until each has the fewest battles."""
    most = sorted((n for _, n in counts), reverse=True)[:FEWEST_ANNOTATORS]
    held = sum(min(n, FEWEST_BATTLES) for n in most)
    return FEWEST_ANNOTATORS * FEWEST_BATTLES - held


def _winning_rate(tested: Sequence[LeftOut], epsilon: float, times: float = 1.0) -> float:
    rejected = _rejections([annotator.p(epsilon, times) for annotator in tested])
    return rejected / len(tested)


def _rejections(p_values: Sequence[float]) -> int:
    """Return how many hypotheses the procedure of Benjamini and Yekutieli (2001) rejects."""
    n = len(p_values)
    harmonic = sum(1 / k for k in range(1, n + 1))
    bounds = (k / n * _FALSE_DISCOVERIES / harmonic for k in range(1, n + 1))
    ranks = enumerate(zip(sorted(p_values), bounds, strict=True), start=1)
    return max((rank for rank, (p, bound) in ranks if p <= bound), default=0)


def _n_more(tested: Sequence[LeftOut], epsilon: float) -> int | None:
    """Return how many more votes like those there are would let the judge pass, to a twentieth."""
    n_votes = sum(annotator.n for annotator in tested)
    enough = (times for times in _times() if _winning_rate(tested, epsilon, times) >= _ENOUGH)
    times = next(enough, None)
    return None if times is None else ceil((times - 1) * n_votes)


def _times() -> Iterator[float]:
    times = 1.0
    while times <= _MOST_TIMES:
        yield times
        times *= 1.05
