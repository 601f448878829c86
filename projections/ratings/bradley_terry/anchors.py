"""Rate entrants among human anchors: battles of judges and of people together.

Human votes alone rate the anchors, too. The difference between the two ratings of an anchor shows
what judging did to the scale.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
from msgspec.structs import replace

from ledger.events.imports import RatingSource
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, joined
from projections.battles.imported import BattlesOfSet
from projections.ratings.bradley_terry.evidence import components_of
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.results.ratings import BradleyTerryRow


@dataclass(frozen=True)
class AnchoredRatings:
    """Ratings by all battles, and by human votes alone, whose intervals are unused."""

    ratings: BradleyTerryRatings
    human: BradleyTerryRatings
    judged_with: Mapping[str, int]
    """By entrant its group among the battles that no person voted on: they link its members."""

    def source(self, entrant: str) -> RatingSource:
        """Say who rated an entrant: human, if it has human votes, which makes it an anchor."""
        return "human" if entrant in self._anchors else "evaluated"

    @property
    def differences(self) -> Mapping[str, float]:
        """Each anchor's rating by all battles minus that by human votes, in Elo points.

        The two scales have no common zero, so the mean over the anchors of one component in both is
        subtracted. Anchors without a rating, and those alone in a component, are left out.
        """
        return {
            name: difference for group in self._differences for name, difference in group.items()
        }

    @property
    def judged_differences(self) -> Mapping[str, float]:
        """The differences that tell something of judges, whose battles link two anchors there.

        Without such battles an anchor's two ratings are one, whatever the judges said.
        """
        linked = (group for group in self._differences if self._are_linked(group))
        return {name: difference for group in linked for name, difference in group.items()}

    @property
    def mae(self) -> float | None:
        """The mean absolute of the judged differences; None if there are none."""
        differences = self.judged_differences.values()
        return fmean(map(abs, differences)) if differences else None

    @property
    def _differences(self) -> list[dict[str, float]]:
        """Each group's differences."""
        groups: dict[tuple[int | None, int | None], dict[str, float]] = defaultdict(dict)
        for row in self.ratings.rows():
            alone = self._anchors.get(row.entrant)
            if alone is not None and alone.rating is not None and row.rating is not None:
                together = groups[row.group, alone.group]
                together[row.entrant] = row.rating - alone.rating
        return [
            {name: difference - fmean(group.values()) for name, difference in group.items()}
            for group in groups.values()
            if len(group) > 1
        ]

    def _are_linked(self, anchors: Collection[str]) -> bool:
        """Say whether judges' battles link any two of some anchors."""
        met = [self.judged_with[name] for name in anchors if name in self.judged_with]
        return len(set(met)) < len(met)

    @cached_property
    def _anchors(self) -> Mapping[str, BradleyTerryRow]:
        return {row.entrant: row for row in self.human.rows() if row.n_battles}


def rate_with_anchors(
    others: BattlesOfSet,
    parameters: BradleyTerryParameters,
    battles: Battles | None = None,
    *,
    soft: bool,
    same: Mapping[Hashable, Hashable] | None = None,
) -> AnchoredRatings:
    """Rate entrants by imported battles, and by a tournament's if there are any.

    Args:
        others: The imported battles.
        parameters: The model, and the interval.
        battles: The tournament's.
        soft: Whether to use imported preferences, not only who won.
        same: By a prompt's id that of the first prompt of the same text, if known.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    imported = others.rated(soft=soft)
    human = others.take(others.is_human).rated(soft=soft)
    ours = () if battles is None else (battles,)
    together = joined([part.grouped(same or {}) for part in (*ours, imported)])
    judged = others.take(~others.is_human).rated(soft=soft)
    all_judged = joined([*ours, judged])
    point_only = replace(parameters, anchor=None, interval="sandwich")
    return AnchoredRatings(
        rate(together, parameters), rate(human, point_only), _linked_groups(all_judged)
    )


def _linked_groups(battles: Battles) -> dict[str, int]:
    """Return by entrant the number of its group: its battles link it to all others there."""
    either_way = np.append(battles.a, battles.b), np.append(battles.b, battles.a)
    label = components_of(len(battles.entrants), *either_way).label
    return {battles.entrants[i]: int(label[i]) for i in np.unique(either_way[0])}
