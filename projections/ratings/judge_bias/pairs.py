"""Pairs of responses as arrays: what each judge said of them in both orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ledger.events.judging import Order, Verdict
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.style_features import differences_in_style
from projections.tournament.compared import SCORES
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement, by_dimension, settle, verdict_of
from projections.tournament.state import Tournament
from projections.verdicts.policies import outcome_of_order
from projections.verdicts.queries import Said

Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of different responses on which a judge gave a verdict in both orders.

    Attributes:
        entrants: (n_entrants,) names, sorted.
        judges: (n_judges,) names.
        a, b: (n,) numbers of the entrants; of two entrants always the same is a.
        judge: (n,) the number of the judge.
        prompt: (n,) the number of the prompt's text.
        pair: (n,) the number of the pair, the same for each judge.
        forward: (n,) what a took where it was shown first: 1, 0, or 1/2 of a tie.
        swapped: (n,) what a took where it was shown second.
        style: By feature, (n,) that of a's response minus that of b's.
    """

    entrants: tuple[str, ...]
    judges: tuple[str, ...]
    a: Places
    b: Places
    judge: Places
    prompt: Places
    pair: Places
    forward: Floats
    swapped: Floats
    style: Mapping[str, Floats]

    def __len__(self) -> int:
        """Return the number of pairs, each counted once for each judge."""
        return len(self.a)

    @property
    def is_inconsistent(self) -> Mask:
        """Whether the orders disagree, (n,)."""
        return np.asarray(self.forward != self.swapped)

    def where(self, kept: Mask) -> "JudgedPairs":
        """Select pairs by a mask, (n,); keep all names."""
        columns = ("a", "b", "judge", "prompt", "pair", "forward", "swapped")
        return replace(
            self,
            **{name: getattr(self, name)[kept] for name in columns},
            style={name: column[kept] for name, column in self.style.items()},
        )

    def by(self, judge: str) -> "JudgedPairs":
        """Select the pairs of one judge."""
        return self.where(self.judge == self.judges.index(judge))

    def shared(self) -> "JudgedPairs":
        """Select the pairs that at least two judges judged; name the judges of these alone."""
        _, number, n_judges = np.unique(self.pair, return_inverse=True, return_counts=True)
        pairs = self.where(n_judges[number] > 1)
        present = np.unique(pairs.judge)
        return replace(
            pairs,
            judges=tuple(self.judges[judge] for judge in present),
            judge=np.searchsorted(present, pairs.judge),
        )

    def orders(self) -> Battles:
        """Return each order as a battle, (2 n,): first all that show a first, then the others."""
        return Battles.by_score(
            self.entrants,
            a=np.tile(self.a, 2),
            b=np.tile(self.b, 2),
            score=np.concatenate((self.forward, self.swapped)),
            cluster=np.tile(self.prompt, 2),
            weight=np.ones(2 * len(self)),
        )


def judged_pairs(
    tournament: Tournament, judges: Sequence[JudgeSettings]
) -> dict[Dimension, JudgedPairs]:
    """Return what judges said, by dimension; judges with no such pair are named, too."""
    said = partial(verdict_of, tournament, parser=None)
    prompts = frozenset(prompt.prompt_id for prompt in tournament.bank)
    settled = [by_dimension(tournament, settle(tournament, prompts, judge)) for judge in judges]
    names = tuple(str(judge.judge_id) for judge in judges)
    return {
        dimension: _pairs_of(said, names, [groups[dimension] for groups in settled])
        for dimension in (rubric.dimension for rubric in tournament.dimensions)
    }


_Row: TypeAlias = tuple[int, Match, float, float]
"""The judge's number, the match, and what a took in either order."""

_TAKEN: Final[Mapping[Order, Mapping[Verdict, float]]] = {
    order: {verdict: SCORES[outcome_of_order(verdict, order)] for verdict in get_args(Verdict)}
    for order in get_args(Order)
}
"""What a took by a verdict in an order."""


def _pairs_of(
    said: Said, judges: tuple[str, ...], groups: Sequence[Sequence[Settlement]]
) -> JudgedPairs:
    """Build the pairs of a dimension from the settlements of each judge."""
    forward_took, swapped_took = _TAKEN["forward"], _TAKEN["swapped"]
    rows: list[_Row] = [
        (number, match, forward_took[forward], swapped_took[swapped])
        for number, group in enumerate(groups)
        for match in (settlement.match for settlement in group)
        if match is not None and not match.is_identical
        if (forward := said(match.forward_key)) is not None
        if (swapped := said(match.swapped_key)) is not None
    ]
    matches = [match for _, match, _, _ in rows]
    a = [match.pairing.a.entrant.entrant_id for match in matches]
    b = [match.pairing.b.entrant.entrant_id for match in matches]
    entrants = tuple(sorted({*a, *b}))
    place = {name: n for n, name in enumerate(entrants)}
    numbers, prompts = (
        {each: n for n, each in enumerate(dict.fromkeys(found))}
        for found in ((match.pairing.names for match in matches), map(_text_of, matches))
    )
    return JudgedPairs(
        entrants,
        judges,
        a=np.array([place[name] for name in a], dtype=np.intp),
        b=np.array([place[name] for name in b], dtype=np.intp),
        judge=np.array([number for number, *_ in rows], dtype=np.intp),
        prompt=np.array([prompts[_text_of(match)] for match in matches], dtype=np.intp),
        pair=np.array([numbers[match.pairing.names] for match in matches], dtype=np.intp),
        forward=np.array([forward for _, _, forward, _ in rows], dtype=np.float64),
        swapped=np.array([swapped for *_, swapped in rows], dtype=np.float64),
        style=differences_in_style(
            [match.response_a.text for match in matches],
            [match.response_b.text for match in matches],
        ),
    )


def _text_of(match: Match) -> str:
    return match.pairing.prompt.text
