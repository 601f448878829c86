"""Rate entrants among human anchors: battles of judges and of people together.

Human votes alone rate the anchors, too. The difference between the two ratings of an anchor shows
what judging did to the scale.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.imports import RatingSource
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.battles.imported import BattleTable
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, Rating, rate


@dataclass(frozen=True)
class AnchoredRatings:
    """Ratings by all battles, and by human votes alone, whose intervals are unused."""

    ratings: BradleyTerryRatings
    human: BradleyTerryRatings

    def source(self, entrant: str) -> RatingSource:
        """Say who rated an entrant: human, if it has human votes, which makes it an anchor."""
        return "human" if entrant in self._anchors else "evaluated"

    @property
    def differences(self) -> Mapping[str, float]:
        """Each anchor's rating by all battles minus that by human votes, in Elo points.

        The two scales have no common zero, so the mean over the anchors of one component in both is
        subtracted. Anchors without a rating, and those alone in a component, are left out.
        """
        groups: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
        for row in self.ratings.rows():
            alone = self._anchors.get(row.entrant)
            if alone is not None and alone.rating is not None and row.rating is not None:
                together = groups[row.component, alone.component]
                together[row.entrant] = row.rating - alone.rating
        return {
            name: difference - fmean(group.values())
            for group in groups.values()
            if len(group) > 1
            for name, difference in group.items()
        }

    @property
    def mae(self) -> float | None:
        """The mean absolute difference; None where no two anchors can be compared."""
        differences = self.differences.values()
        return fmean(map(abs, differences)) if differences else None

    @cached_property
    def _anchors(self) -> Mapping[str, Rating]:
        return {row.entrant: row for row in self.human.rows() if row.n_battles}


def rate_with_anchors(
    others: BattleTable,
    parameters: BradleyTerryParameters,
    battles: Battles | None = None,
    *,
    soft: bool,
) -> AnchoredRatings:
    """Rate entrants by imported battles, and by a tournament's if there are any.

    Args:
        others: The imported battles.
        parameters: The model, and the interval.
        battles: The tournament's.
        soft: Whether to use imported preferences, not only who won.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    imported = others.battles(soft=soft)
    human = others.where(others.is_human).battles(soft=soft)
    together = imported if battles is None else join_battles(battles, imported)
    point_only = replace(parameters, anchor=None, interval="sandwich")
    return AnchoredRatings(ratings=rate(together, parameters), human=rate(human, point_only))


def join_battles(battles: Battles, others: Battles) -> Battles:
    """Join the battles of two sources; prompts of the same id are one.

    Two prompts that share an id by chance become one cluster, which makes an interval a little less
    precise; one prompt taken for two would make it too narrow.
    """
    entrants = tuple(sorted({*battles.entrants, *others.entrants}))
    place = {name: i for i, name in enumerate(entrants)}
    ours, theirs = (
        np.array([place[name] for name in each.entrants], dtype=np.intp)
        for each in (battles, others)
    )
    return Battles(
        entrants,
        a=np.concatenate((ours[battles.a], theirs[others.a])),
        b=np.concatenate((ours[battles.b], theirs[others.b])),
        score=np.concatenate((battles.score, others.score)),
        cluster=np.concatenate((battles.cluster, _numbers_beside(battles, others)[others.cluster])),
        weight=np.concatenate((battles.weight, others.weight)),
        prompts=battles.prompts,
    )


def _numbers_beside(battles: Battles, others: Battles) -> NDArray[np.intp]:
    """Return the number of each of the others' clusters among those of the battles."""
    known = {name: number for number, name in enumerate(battles.prompts)}
    n_known = max(len(known), int(battles.cluster.max(initial=-1)) + 1)
    n_others = max(len(others.prompts), int(others.cluster.max(initial=-1)) + 1)
    numbers = n_known + np.arange(n_others)
    for place, name in enumerate(others.prompts):
        numbers[place] = known.get(name, numbers[place])
    return numbers
