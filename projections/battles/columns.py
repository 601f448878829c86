"""Battles as arrays: entrants, scores, prompts and weights; the input of every rating."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.errors import TourneyError


class NotABattle(TourneyError):
    """A battle that no rating can use."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"battle {number}, counted from 0: {why}; correct or remove it")
        self.number, self.why = number, why


class CannotRate(TourneyError):
    """Battles that cannot be rated as asked."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot rate these battles: {why}; {remedy}")
        self.why, self.remedy = why, remedy


BattleRow: TypeAlias = (
    tuple[str, str, float, Hashable] | tuple[str, str, float, Hashable, float]
)  # the fields of a Battle

TIE: Final = 0.5  # what either side takes of a tie


class Battle(NamedTuple):
    """A comparison of two entrants; score is a's: 1 won, 0 lost, 1/2 tied, or between."""

    a: str
    b: str
    score: float
    prompt: Hashable
    weight: float = 1.0


@dataclass(frozen=True)
class Battles:
    """Battles as arrays, checked; battles without a verdict are not included.

    Attributes:
        entrants: (n_entrants,) names, sorted.
        a: (n,) index of one entrant among the names.
        b: (n,) index of the other.
        score: (n,) a's score, in [0, 1].
        cluster: (n,) the number of the prompt. Battles on one prompt, in all pairs, orders and
            dimensions, are not independent.
        weight: (n,) positive, how often the battle counts.
        prompts: Ids of the first clusters, in order of their numbers; later clusters have none.

    Raises:
        NotABattle: A battle has one entrant only, or an invalid score or weight.
        ValueError: The columns have different lengths, or the names are not sorted.
    """

    entrants: tuple[str, ...]
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    score: NDArray[np.float64]
    cluster: NDArray[np.intp]
    weight: NDArray[np.float64]
    prompts: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        """Check the columns."""
        columns = (self.a, self.b, self.score, self.cluster, self.weight)
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of battles differ in length")
        if list(self.entrants) != sorted(set(self.entrants)):
            raise ValueError("the entrants of battles are not sorted, or one is named twice")
        n = len(self.entrants)
        known = (self.a >= 0) & (self.a < n) & (self.b >= 0) & (self.b < n)
        _refuse(~known, "an entrant has no name")
        _refuse(self.a == self.b, "an entrant cannot battle itself")
        _refuse(self.cluster < 0, "a prompt's number is 0 or more")
        _refuse(~((self.score >= 0) & (self.score <= 1)), "a score is from 0 to 1")
        _refuse(~((self.weight > 0) & (self.weight < np.inf)), "a weight is positive and finite")

    def __len__(self) -> int:
        """Return the number of battles."""
        return len(self.a)

    def prompt_of(self, cluster: int) -> Hashable | None:
        """Return the id of a cluster's prompt; None without one."""
        return self.prompts[cluster] if cluster < len(self.prompts) else None

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "Battles":
        """Select battles by a mask or by indices; keep all names."""
        return replace(
            self,
            a=self.a[chosen],
            b=self.b[chosen],
            score=self.score[chosen],
            cluster=self.cluster[chosen],
            weight=self.weight[chosen],
        )

    def grouped(self, same: Mapping[Hashable, Hashable]) -> "Battles":
        """Make one cluster of prompts that are the same.

        Args:
            same: By a prompt's id that of the first such prompt; others, and each without an id,
                stand for themselves.
        """
        names = [
            (same.get(each, each), own if each is None else None)
            for own, each in enumerate(self.prompts)
        ]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        n_more = int(self.cluster.max(initial=-1)) + 1 - len(names)
        places = [*map(numbers.__getitem__, names), *range(len(numbers), len(numbers) + n_more)]
        cluster = np.array(places, dtype=np.intp)[self.cluster]
        return replace(self, cluster=cluster, prompts=tuple(name for name, _ in numbers))


def battles_of(rows: Iterable[BattleRow]) -> Battles:
    """Build battles from rows; entrants are sorted, prompts numbered in order.

    Args:
        rows: Battles, or tuples of a, b, score, prompt and perhaps a weight.

    Raises:
        NotABattle: As for Battles; its number counts the rows.
    """
    whole = [row if len(row) == len(Battle._fields) else Battle(*row) for row in rows]
    a, b, score, prompt, weight = zip(*whole, strict=True) if whole else ((),) * 5
    entrants = tuple(sorted({*a, *b}))
    place = {name: i for i, name in enumerate(entrants)}
    prompts = {each: i for i, each in enumerate(dict.fromkeys(prompt))}
    return Battles(
        entrants,
        a=np.array([place[name] for name in a], dtype=np.intp),
        b=np.array([place[name] for name in b], dtype=np.intp),
        score=np.array(score, dtype=np.float64),
        cluster=np.array([prompts[each] for each in prompt], dtype=np.intp),
        weight=np.array(weight, dtype=np.float64),
        prompts=tuple(prompts),
    )


def _refuse(wrong: NDArray[np.bool_], why: str) -> None:
    if wrong.any():
        raise NotABattle(int(wrong.argmax()), why)
