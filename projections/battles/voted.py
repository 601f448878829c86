"""A judge's battles, with human scores where people voted on the same battles."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import TIE, Battles, battles_of
from projections.battles.settled import Meeting, named_battles
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


class Vote(NamedTuple):
    """A vote on a battle: the score of one entrant, and how often the vote counts."""

    a: str
    score: float
    weight: float


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
    given: dict[Meeting, list[Vote]] = defaultdict(list)
    for place, a, meeting in named_battles(votes):
        given[meeting].append(Vote(a, float(votes.score[place]), float(votes.weight[place])))
    human = np.full(len(judged), np.nan)
    met: set[Meeting] = set()
    for place, first, meeting in named_battles(judged):
        if meeting in given:
            met.add(meeting)
            human[place] = _mean_score(given[meeting], first)
    n_votes = sum(len(given[meeting]) for meeting in met)
    return VotedBattles(
        judged.grouped(same or {}), human, n_votes, n_unmatched=len(votes) - n_votes
    )


def _mean_score(votes: Sequence[Vote], entrant: str) -> float:
    scores = [vote.score if vote.a == entrant else 1 - vote.score for vote in votes]
    return fmean(scores, weights=[vote.weight for vote in votes])


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
