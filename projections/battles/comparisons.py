"""Comparisons in columns: counted, and made battles of, all at once."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import TieModel, TieRule
from projections.battles.columns import TIE, Battles
from projections.intervals import Floats
from projections.tournament.compared import (
    FAILURES,
    IDENTICAL,
    OPPOSITE,
    SCORES,
    TIE_BESIDE_WIN,
    Account,
    Compared,
    Counted,
    account_from,
)

STATUSES: Final = (
    *(*SCORES, IDENTICAL),
    *("inconsistent", OPPOSITE, TIE_BESIDE_WIN),
    *("pending", *FAILURES),
)
"""Every way in which a comparison can end, or not have ended."""

CODES: Final = {status: code for code, status in enumerate(STATUSES)}
TOOK: Final = np.array([{**SCORES, IDENTICAL: TIE}.get(status, np.nan) for status in STATUSES])
"""What a took by each of them; nan unless it is decided or tied."""


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Comparisons:
    """What was compared on a dimension, or in an imported set, in columns.

    Attributes:
        entrants: Names, each once.
        clusters: What tells prompts apart, each once.
        prompts: The id of the first prompt of each cluster, or None.
        a: (n,) index of one entrant among the names.
        b: (n,) index of the other.
        cluster: (n,) index of the prompt among the clusters.
        status: (n,) index of the outcome, or of why there is none, in STATUSES.
        share: (n,) what a took by each verdict or preference there is; nan without any.
        weight: (n,) how often it counts.
        counted: What each is one of.
    """

    entrants: tuple[str, ...]
    clusters: tuple[Hashable, ...]
    prompts: tuple[Hashable, ...]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    cluster: NDArray[np.intp]
    status: NDArray[np.uint8]
    share: Floats
    weight: Floats
    counted: Counted = "pairs"

    @cached_property
    def account(self) -> Account:
        """How many have which status."""
        counts = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        return account_from(dict(zip(STATUSES, counts, strict=True)), self.counted)

    @property
    def score(self) -> Floats:
        """What a took by the outcome, (n,): 1, 0, 1/2 of a tie; nan unless decided or tied."""
        return np.asarray(TOOK[self.status])

    @property
    def n_judged_prompts(self) -> int:
        """On how many prompts something was decided or tied."""
        return len(np.unique(self.cluster[~np.isnan(self.score)]))

    def battles(self, *, ties: TieRule) -> Battles:
        """Return the battles of Elo: the decided pairs, and the tied if they count half."""
        score = self.score
        is_counted = ~np.isnan(score) & ((score != TIE) | (ties == "half"))
        return self._battles(np.flatnonzero(is_counted), score[is_counted])

    def verdict_battles(self, ties: TieModel) -> tuple[Battles, NDArray[np.intp]]:
        """Return the battles of Bradley-Terry, where each order's verdict counts by itself.

        A pair is a battle with the mean score of its verdicts: 3/4 of a win beside a tie, 1/2 of
        opposite winners. With one verdict only it has half the weight. A model in which a tie is an
        outcome of its own has no such scores: there each of two verdicts that differ is a battle
        of half the weight.

        Returns:
            The battles, and the place of each one's comparison.
        """
        share, places = self.share, np.flatnonzero(~np.isnan(self.share))
        if ties == "half":
            return self._battles(places, share[places]), places
        apart = np.where(self.status == CODES[OPPOSITE], 0.5, 4 * share % 2 / 4)  # from the mean
        places = np.repeat(places, 1 + (apart[places] > 0))
        sign = np.where(np.append(places[1:], -1) == places, 1, -1)  # the higher of two comes first
        battles = self._battles(places, share[places] + sign * apart[places])
        return replace(battles, weight=battles.weight / (1 + (apart[places] > 0))), places

    def _battles(self, places: NDArray[np.intp], score: Floats) -> Battles:
        """Return some comparisons, by their places, as battles with these scores."""
        a, b, cluster = self.a[places], self.b[places], self.cluster[places]
        met = sorted(np.unique([a, b]).tolist(), key=self.entrants.__getitem__)
        prompts, first, prompt = np.unique(cluster, return_index=True, return_inverse=True)
        in_order = np.argsort(first)
        return Battles(
            tuple(self.entrants[each] for each in met),
            a=_numbers(met, len(self.entrants))[a],
            b=_numbers(met, len(self.entrants))[b],
            score=score,
            cluster=_numbers(in_order, len(in_order))[prompt],
            weight=self.weight[places],
            prompts=tuple(self.prompts[each] for each in prompts[in_order]),
        )


def _numbers(in_order: Iterable[int] | NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return the place of each of n things in an order of some of them, (n,)."""
    order = np.asarray(in_order, dtype=np.intp)
    places = np.zeros(n, dtype=np.intp)
    places[order] = np.arange(len(order))
    return places


def comparisons_of(
    compared: Iterable[Compared] | Comparisons,
    cluster_of: Callable[[Compared], Hashable] = attrgetter("cluster"),
) -> Comparisons:
    """Return comparisons, all of one kind, in columns; what is in columns stays as it is."""
    if isinstance(compared, Comparisons):
        return compared
    rows = [*compared]
    a, b = [each.entrant_a for each in rows], [each.entrant_b for each in rows]
    found = [*map(cluster_of, rows)]
    status = [CODES[each.exact_status] for each in rows]
    entrants, clusters = _numbered(chain.from_iterable(zip(a, b, strict=True))), _numbered(found)
    prompts = dict(zip(reversed(found), (each.prompt_id for each in reversed(rows)), strict=True))
    return Comparisons(
        tuple(entrants),
        tuple(clusters),
        tuple(prompts[each] for each in clusters),
        a=np.array([entrants[each] for each in a], dtype=np.intp),
        b=np.array([entrants[each] for each in b], dtype=np.intp),
        cluster=np.array([clusters[each] for each in found], dtype=np.intp),
        status=np.array(status, dtype=np.uint8),
        share=np.array([each.share for each in rows], dtype=np.float64),  # None: nan
        weight=np.array([each.weight for each in rows], dtype=np.float64),
        counted=rows[0].counted if rows else "pairs",
    )


def joined(parts: Sequence[Comparisons]) -> Comparisons:
    """Return comparisons of one kind, of at least one part, one part after the other."""
    entrants = _numbered(chain.from_iterable(part.entrants for part in parts))
    clusters = _numbered(chain.from_iterable(part.clusters for part in parts))
    names = [np.array([entrants[each] for each in part.entrants], np.intp) for part in parts]
    numbers = [np.array([clusters[each] for each in part.clusters], np.intp) for part in parts]
    prompts: dict[Hashable, Hashable] = {}
    for part in reversed(parts):
        prompts |= zip(part.clusters, part.prompts, strict=True)
    pairs = [*zip(parts, names, numbers, strict=True)]
    return Comparisons(
        tuple(entrants),
        tuple(clusters),
        tuple(prompts[each] for each in clusters),
        a=np.concatenate([place[part.a] for part, place, _ in pairs]),
        b=np.concatenate([place[part.b] for part, place, _ in pairs]),
        cluster=np.concatenate([place[part.cluster] for part, _, place in pairs]),
        status=np.concatenate([part.status for part in parts]),
        share=np.concatenate([part.share for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
        counted=next((part.counted for part in parts if len(part.status)), "pairs"),
    )


def _numbered(names: Iterable[Name]) -> dict[Name, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
