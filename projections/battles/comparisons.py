"""Comparisons in columns: counted, and made battles of, all at once."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import TieRule
from projections.battles.columns import TIE, Battles
from projections.intervals import Floats
from projections.tournament.compared import (
    FAILURES,
    SCORES,
    Account,
    Compared,
    Counted,
    account_from,
)

STATUSES: Final = (*SCORES, "inconsistent", "pending", *FAILURES)
"""Every way in which a comparison can end, or not have ended."""

CODES: Final = {status: code for code, status in enumerate(STATUSES)}
_TOOK: Final = np.array([SCORES.get(status, np.nan) for status in STATUSES])


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Comparisons:
    """What was compared on a dimension, or in an imported set, in columns.

    Attributes:
        entrants: Names, each once.
        clusters: What tells prompts apart, each once.
        a: (n,) index of one entrant among the names.
        b: (n,) index of the other.
        cluster: (n,) index of the prompt among the clusters.
        status: (n,) index of the outcome, or of why there is none, in STATUSES.
        weight: (n,) how often it counts.
        counted: What each is one of.
    """

    entrants: tuple[str, ...]
    clusters: tuple[Hashable, ...]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    cluster: NDArray[np.intp]
    status: NDArray[np.uint8]
    weight: Floats
    counted: Counted = "pairs"

    @cached_property
    def account(self) -> Account:
        """How many have which status."""
        counts = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        return account_from(dict(zip(STATUSES, counts, strict=True)), self.counted)

    @property
    def score(self) -> Floats:
        """What a took, (n,): 1, 0, or 1/2 of a tie; nan unless it was decided or tied."""
        return np.asarray(_TOOK[self.status])

    @property
    def n_judged_prompts(self) -> int:
        """On how many prompts something was decided or tied."""
        return len(np.unique(self.cluster[~np.isnan(self.score)]))

    def battles(self, *, ties: TieRule) -> Battles:
        """Return the battles that count for a rating: the decided, and ties if they count half."""
        score = self.score
        is_counted = ~np.isnan(score) & ((score != TIE) | (ties == "half"))
        a, b, cluster = self.a[is_counted], self.b[is_counted], self.cluster[is_counted]
        met = sorted(np.unique([a, b]).tolist(), key=self.entrants.__getitem__)
        prompts, first, prompt = np.unique(cluster, return_index=True, return_inverse=True)
        in_order = np.argsort(first)
        return Battles(
            tuple(self.entrants[each] for each in met),
            a=_numbers(met, len(self.entrants))[a],
            b=_numbers(met, len(self.entrants))[b],
            score=score[is_counted],
            cluster=_numbers(in_order, len(in_order))[prompt],
            weight=self.weight[is_counted],
            prompts=tuple(self.clusters[each] for each in prompts[in_order]),
        )


def _numbers(in_order: Iterable[int] | NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return the place of each of n things in an order of some of them, (n,)."""
    order = np.asarray(in_order, dtype=np.intp)
    places = np.zeros(n, dtype=np.intp)
    places[order] = np.arange(len(order))
    return places


def comparisons_of(compared: Iterable[Compared] | Comparisons) -> Comparisons:
    """Return comparisons, all of one kind, in columns; what is in columns stays as it is."""
    if isinstance(compared, Comparisons):
        return compared
    rows = [*compared]
    a, b = [each.entrant_a for each in rows], [each.entrant_b for each in rows]
    prompts = [each.cluster for each in rows]
    status = [CODES[each.status] for each in rows]
    entrants, clusters = _numbered(chain.from_iterable(zip(a, b, strict=True))), _numbered(prompts)
    return Comparisons(
        tuple(entrants),
        tuple(clusters),
        a=np.array([entrants[each] for each in a], dtype=np.intp),
        b=np.array([entrants[each] for each in b], dtype=np.intp),
        cluster=np.array([clusters[each] for each in prompts], dtype=np.intp),
        status=np.array(status, dtype=np.uint8),
        weight=np.array([each.weight for each in rows], dtype=np.float64),
        counted=rows[0].counted if rows else "pairs",
    )


def joined(parts: Sequence[Comparisons]) -> Comparisons:
    """Return comparisons of one kind, of at least one part, one part after the other."""
    entrants = _numbered(chain.from_iterable(part.entrants for part in parts))
    clusters = _numbered(chain.from_iterable(part.clusters for part in parts))
    names = [np.array([entrants[each] for each in part.entrants], np.intp) for part in parts]
    prompts = [np.array([clusters[each] for each in part.clusters], np.intp) for part in parts]
    pairs = [*zip(parts, names, prompts, strict=True)]
    return Comparisons(
        tuple(entrants),
        tuple(clusters),
        a=np.concatenate([place[part.a] for part, place, _ in pairs]),
        b=np.concatenate([place[part.b] for part, place, _ in pairs]),
        cluster=np.concatenate([place[part.cluster] for part, _, place in pairs]),
        status=np.concatenate([part.status for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
        counted=next((part.counted for part in parts if len(part.status)), "pairs"),
    )


def _numbered(names: Iterable[Name]) -> dict[Name, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
