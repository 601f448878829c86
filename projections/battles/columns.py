"""Battles in columns, whatever they came from: counted, selected, and the input of every rating.

Where pairs were asked in one order, what the slot gave is taken off their scores, as much of each.
Fitted in Bradley-Terry, it would widen the ratings, up to 1.65 times, and those of pairs that were
asked in both orders would be on another scale.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, islice
from operator import attrgetter
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledger.errors import TourneyError
from ledger.events.ratings import TieModel, TieRule
from projections.intervals import Floats
from projections.tournament.compared import (
    FAILURES,
    IDENTICAL,
    OPPOSITE,
    SCORES,
    TIE_BESIDE_WIN,
    Account,
    Counted,
    account_from,
)
from projections.tournament.settlement import Compared

TIE: Final = 0.5  # what either side takes of a tie
STATUSES: Final = (
    *(*SCORES, IDENTICAL),
    *("inconsistent", OPPOSITE, TIE_BESIDE_WIN),
    *("pending", *FAILURES),
)
"""Every way in which a battle can end, or not have ended."""

CODES: Final = {status: code for code, status in enumerate(STATUSES)}
TOOK: Final = np.array([{**SCORES, IDENTICAL: TIE}.get(status, np.nan) for status in STATUSES])
"""What a took by each of them; nan unless it is decided or tied."""

Name = TypeVar("Name", bound=Hashable)


class CannotRate(TourneyError):
    """Battles that cannot be rated as asked."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot rate these battles: {why}; {remedy}")
        self.why, self.remedy = why, remedy


@dataclass(frozen=True)
class Battles:
    """Battles in columns: of a dimension of a tournament, or of an imported set.

    Attributes:
        entrants: (n_entrants,) names, sorted.
        a: (n,) index of one entrant among the names.
        b: (n,) index of the other.
        score: (n,) what a took by each verdict or preference there is; nan without any. In [0, 1],
            but for what was taken off for the slot.
        cluster: (n,) the number of the prompt. Battles on one prompt, in all pairs, orders and
            dimensions, are not independent.
        weight: (n,) positive, how often the battle counts.
        status: (n,) index of the outcome, or of why there is none, in STATUSES.
        slot: (n,) 1 where a was shown first only, -1 where second only; 0: both, or not known.
        prompts: Ids of the first clusters, in order of their numbers; later clusters have none.
        counted: What each is one of.
        widening: How much wider intervals are, since the battles were looked at before.
    """

    entrants: tuple[str, ...]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score: Floats
    cluster: NDArray[np.intp]
    weight: Floats
    status: NDArray[np.uint8]
    prompts: tuple[Hashable, ...] = ()
    counted: Counted = "pairs"
    widening: float = 1.0
    slot: NDArray[np.int8] | int = 0

    @classmethod
    def by_score(
        cls,
        entrants: tuple[str, ...],
        a: NDArray[np.intp],
        b: NDArray[np.intp],
        score: Floats,
        cluster: NDArray[np.intp],
        weight: Floats,
        prompts: tuple[Hashable, ...] = (),
    ) -> "Battles":
        """Return battles that all have a score: who took more won."""
        status = np.choose((score >= TIE).astype(np.intp) + (score > TIE), _BY_SCORE)
        return Battles(entrants, a, b, score, cluster, weight, status, prompts)

    def __len__(self) -> int:
        """Return the number of battles."""
        return len(self.a)

    @cached_property
    def account(self) -> Account:
        """How many have which status."""
        counts = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        n_in_one_order = int(np.count_nonzero((self.slot != 0) & ~np.isnan(self.outcome)))
        by_status = dict(zip(STATUSES, counts, strict=True))
        return account_from(by_status, self.counted, in_one_order=n_in_one_order)

    @property
    def observed(self) -> Floats:
        """What a took, (n,), with what the slot gave."""
        is_as_said = (np.asarray(self.slot) == 0) | np.isnan(self.outcome)
        return np.where(is_as_said, self.score, self.outcome)

    @property
    def outcome(self) -> Floats:
        """What a took by the outcome, (n,): 1, 0, 1/2 of a tie; nan unless decided or tied."""
        return np.asarray(TOOK[self.status])

    @property
    def n_judged_prompts(self) -> int:
        """On how many prompts something was decided or tied."""
        return len(np.unique(self.cluster[~np.isnan(self.outcome)]))

    def prompt_of(self, cluster: int) -> Hashable | None:
        """Return the id of a cluster's prompt; None without one."""
        return self.prompts[cluster] if cluster < len(self.prompts) else None

    def by_outcome(self, ties: TieRule) -> Self:
        """Return the battles of Elo: the decided ones, and the tied if they count half.

        A pair is a match, whether it was asked in both orders or in one.
        """
        outcome = self.outcome
        is_counted = ~np.isnan(outcome) & ((outcome != TIE) | (ties == "half"))
        battles = self._met(np.flatnonzero(is_counted), outcome[is_counted])
        if self.counted != "pairs":
            return battles
        return replace(battles, weight=np.ones(len(battles)))

    def by_verdicts(self, ties: TieModel) -> Self:
        """Return the battles of Bradley-Terry, where each order's verdict counts by itself.

        A pair is a battle with the mean score of its verdicts: 3/4 of a win beside a tie, 1/2 of
        opposite winners. With one verdict only it has half the weight. A model in which a tie is an
        outcome of its own has no such scores: there each of two verdicts that differ is a battle
        of half the weight, and nothing is taken off for the slot.
        """
        places = self.verdict_places(ties)
        apart = self._apart(ties)[places]
        score = (self.score if ties == "half" else self.observed)[places]
        sign = np.where(np.append(places[1:], -1) == places, 1, -1)  # the higher of two comes first
        battles = self._met(places, score + sign * apart)
        return replace(battles, weight=battles.weight / (1 + (apart > 0)))

    def verdict_places(self, ties: TieModel) -> NDArray[np.intp]:
        """Return which battle here each of those `by_verdicts` is."""
        places = np.flatnonzero(~np.isnan(self.score))
        return np.repeat(places, 1 + (self._apart(ties)[places] > 0))

    def _apart(self, ties: TieModel) -> Floats:
        """Return how far each verdict of a pair is from their mean, where they are rated apart."""
        if ties == "half":
            return np.zeros(len(self))
        return np.where(self.status == CODES[OPPOSITE], 0.5, 4 * self.observed % 2 / 4)

    def between(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Say of each battle whether both entrants are among these."""
        is_named = np.isin(self.entrants, [*names])
        return is_named[self.a] & is_named[self.b]

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """Select battles by a mask or by indices; keep all names."""
        columns: dict[str, Any] = {
            name: column[chosen]
            for name, column in vars(self).items()
            if isinstance(column, np.ndarray)
        }
        return replace(self, **columns)

    def _met(self, places: NDArray[np.intp], score: Floats) -> Self:
        """Select battles with other scores; keep the names of those who met, and their prompts."""
        chosen = self.take(places)
        met = np.unique([chosen.a, chosen.b])
        numbers, first, number = np.unique(chosen.cluster, return_index=True, return_inverse=True)
        in_order = np.argsort(first)
        prompts = (self.prompt_of(cluster) for cluster in numbers[in_order])
        return replace(
            chosen,
            entrants=tuple(self.entrants[entrant] for entrant in met),
            a=np.searchsorted(met, chosen.a),
            b=np.searchsorted(met, chosen.b),
            score=score,
            cluster=np.argsort(in_order)[number],
            prompts=tuple(prompts),
        )

    def grouped(self, same: Mapping[Hashable, Hashable]) -> Self:
        """Make one cluster of prompts that are the same.

        Args:
            same: By a prompt's id that of the first such prompt; others, and each without an id,
                stand for themselves.
        """
        names = [
            (same.get(prompt, prompt), own if prompt is None else None)
            for own, prompt in enumerate(self.prompts)
        ]
        numbers = _numbered(names)
        n_more = int(self.cluster.max(initial=-1)) + 1 - len(names)
        places = [*map(numbers.__getitem__, names), *range(len(numbers), len(numbers) + n_more)]
        cluster = np.array(places, dtype=np.intp)[self.cluster]
        return replace(self, cluster=cluster, prompts=tuple(name for name, _ in numbers))


_BY_SCORE: Final = np.array([CODES["b"], CODES["tie"], CODES["a"]], dtype=np.uint8)


def battles_of(
    compared: Iterable[Compared],
    cluster_of: Callable[[Compared], Hashable] = attrgetter("cluster"),
    *,
    widening: float = 1.0,
) -> Battles:
    """Return what was compared, all of one kind, in columns; prompts are numbered in order.

    What the slot gave on a dimension is taken off the scores of pairs that were asked in one order.
    """
    rows = [*compared]
    a, b = [row.entrant_a for row in rows], [row.entrant_b for row in rows]
    clusters = [cluster_of(row) for row in rows]
    entrants, numbers = _numbered(sorted({*a, *b})), _numbered(clusters)
    prompts = dict(zip(reversed(clusters), (row.prompt_id for row in reversed(rows)), strict=True))
    battles = Battles(
        tuple(entrants),
        a=np.array([entrants[name] for name in a], dtype=np.intp),
        b=np.array([entrants[name] for name in b], dtype=np.intp),
        score=np.array([row.share for row in rows], dtype=np.float64),  # None: nan
        cluster=np.array([numbers[cluster] for cluster in clusters], dtype=np.intp),
        weight=np.array([row.weight for row in rows], dtype=np.float64),
        status=np.array([CODES[row.exact_status] for row in rows], dtype=np.uint8),
        prompts=tuple(prompts[cluster] for cluster in numbers),
        counted=rows[0].counted if rows else "pairs",
        widening=widening,
        slot=np.array([row.slot for row in rows], dtype=np.int8),
    )
    return without_slot_effect(battles, [row.dimension for row in rows])


def without_slot_effect(battles: Battles, dimensions: Sequence[str] | None = None) -> Battles:
    """Take off what the slot gave on each dimension: c s, where c = sum of y s / sum of s^2.

    s is the slot, y the score that was observed minus 1/2. Battles stay as observed if that would
    move what an entrant took, or gave, on a dimension by more than half: who won all stays
    undefeated. Of a part of battles it is what those alone say.

    Args:
        battles: Of one judge.
        dimensions: (n,) names; None: all are of one.
    """
    observed = battles.observed
    has_score = ~np.isnan(observed)
    slot = np.where(has_score, battles.slot, 0)
    if not slot.any():  # as where every pair is asked in both orders
        return battles
    dimension = np.unique(dimensions or [""] * len(battles), return_inverse=True)[1]
    score, weight = (np.where(has_score, column, 0.0) for column in (observed, battles.weight))
    n_asked_once = np.maximum(1, np.bincount(dimension, np.abs(slot)))
    effect: Floats = np.bincount(dimension, (score - TIE) * slot) / n_asked_once
    gave, places = effect[dimension] * slot, dimension * len(battles.entrants)
    a, b = places + battles.a, places + battles.b

    def totals(of_a: Floats, of_b: Floats) -> Floats:
        """Sum up by entrant and dimension."""
        weighted = np.concatenate((weight * of_a, weight * of_b))
        return np.asarray(np.bincount(np.concatenate((a, b)), weighted), dtype=np.float64)

    least = np.minimum(totals(score, 1 - score), totals(1 - score, score))
    is_much = 2 * np.abs(totals(gave, -gave)) > least
    return replace(battles, score=observed - np.where(is_much[a] | is_much[b], 0.0, gave))


def joined(parts: Sequence[Battles]) -> Battles:
    """Return the battles of at least one part, one part after the other.

    Prompts of one id are one; each without an id stays a cluster of its own.
    """
    entrants = _numbered(sorted({*chain.from_iterable(part.entrants for part in parts)}))
    prompts = _numbered(chain.from_iterable(part.prompts for part in parts))
    names = [np.array([entrants[name] for name in part.entrants], np.intp) for part in parts]
    unnamed = count(len(prompts))
    numbers = [_numbers_among(prompts, unnamed, part) for part in parts]
    return Battles(
        tuple(entrants),
        a=np.concatenate([name[part.a] for part, name in zip(parts, names, strict=True)]),
        b=np.concatenate([name[part.b] for part, name in zip(parts, names, strict=True)]),
        score=np.concatenate([part.score for part in parts]),
        cluster=np.concatenate([of[part.cluster] for part, of in zip(parts, numbers, strict=True)]),
        weight=np.concatenate([part.weight for part in parts]),
        status=np.concatenate([part.status for part in parts]),
        prompts=tuple(prompts),
        counted=next((part.counted for part in parts if len(part)), "pairs"),
        widening=max(part.widening for part in parts),
        slot=np.concatenate([np.broadcast_to(part.slot, len(part)) for part in parts]),
    )


def _numbers_among(
    prompts: Mapping[Hashable, int], unnamed: Iterator[int], part: Battles
) -> NDArray[np.intp]:
    """Return the number of each of a part's clusters in the whole."""
    n_unnamed = max(0, int(part.cluster.max(initial=-1)) + 1 - len(part.prompts))
    named = [prompts[prompt] for prompt in part.prompts]
    return np.array([*named, *islice(unnamed, n_unnamed)], dtype=np.intp)


def _numbered(names: Iterable[Name]) -> dict[Name, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
