"""Calibration of an entrant's own probability of being correct.

The recorded p_correct of each response is compared with how correct the response is: by the
prompt's gold answer, or by a judge's verdicts.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import fsum
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from ledger.identity import Dimension, EntrantId, PromptId
from projections.tournament.matches import PlannedResponse, planned_response
from projections.tournament.settlement import Settlement, win_shares
from projections.tournament.state import Tournament
from projections.verdicts.parsers import holds_gold

N_BINS: Final = 10
_EDGES: Final = tuple(i / N_BINS for i in range(1, N_BINS))  # between bins

_Place: TypeAlias = tuple[EntrantId, PromptId]


class Case(NamedTuple):
    """A response's p_correct and its correctness, both in [0, 1]."""

    confidence: float
    correctness: float


class Bin(NamedTuple):
    """The cases whose confidence is at least low and below high; the last bin includes 1."""

    low: float
    high: float
    n: int
    confidence: float | None  # the mean; None: the bin is empty
    correctness: float | None  # likewise


@dataclass(frozen=True)
class Calibration:
    """An entrant's cases, against gold answers or the verdicts on a dimension."""

    entrant_id: EntrantId
    dimension: Dimension | None  # None: against gold answers
    cases: tuple[Case, ...]
    n_left_out: int = 0  # responses of which nobody knows how right they are

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Ten bins of equal width: a reliability diagram as numbers."""
        return tuple(
            Bin(
                i / N_BINS,
                (i + 1) / N_BINS,
                n=len(group),
                confidence=fmean(case.confidence for case in group) if group else None,
                correctness=fmean(case.correctness for case in group) if group else None,
            )
            for i, group in enumerate(self._groups)
        )

    @property
    def ece(self) -> float | None:
        """The expected calibration error, in [0, 1]; None without cases.

        ECE = sum over bins of n_b / N * |correctness_b - confidence_b| (Naeini, Cooper and
        Hauskrecht 2015; Guo et al. 2017, equation 3).
        """
        gaps = (abs(fsum(right - sure for sure, right in group)) for group in self._groups)
        return fsum(gaps) / len(self.cases) if self.cases else None

    @property
    def brier(self) -> float | None:
        """The mean squared difference of confidence and correctness, in [0, 1]; None without cases.

        Half the score of Brier 1950, who adds up both classes, correct and wrong.
        """
        return fmean((right - sure) ** 2 for sure, right in self.cases) if self.cases else None

    @cached_property
    def _groups(self) -> tuple[list[Case], ...]:
        groups: tuple[list[Case], ...] = tuple([] for _ in range(N_BINS))
        for case in self.cases:
            groups[bisect_right(_EDGES, case.confidence)].append(case)
        return groups


def against_gold(tournament: Tournament) -> tuple[Calibration, ...]:
    """Compare each entrant's p_correct with gold answers.

    A response is correct, 1, if it contains the gold answer, else 0; without a gold answer it is
    left out.
    """
    claims = _claims(tournament)
    is_held = {claim.place: holds_gold(claim.text, claim.gold) for claim in claims}
    right = {place: float(held) for place, held in is_held.items() if held is not None}
    return tuple(_calibrations(claims, right))


def against_verdicts(
    tournament: Tournament, settlements: Mapping[Dimension, Iterable[Settlement]]
) -> tuple[Calibration, ...]:
    """Compare each entrant's p_correct with verdicts, dimension by dimension.

    A response's correctness is its share of its decided and tied pairs, a tie as half. Inconsistent
    pairs do not count; a response without another pair is left out.

    Args:
        tournament: Its responses.
        settlements: Of its pairings, by dimension.
    """
    claims = _claims(tournament)
    return tuple(
        calibration
        for dimension, group in settlements.items()
        for calibration in _calibrations(claims, win_shares(group, _places_of), dimension)
    )


class _Claim(NamedTuple):
    """A response with its p_correct."""

    place: _Place
    p_correct: float
    text: str
    gold: str | None


def _place_of(cell: PlannedResponse) -> _Place:
    return cell.entrant.entrant_id, cell.prompt.prompt_id


def _places_of(settlement: Settlement) -> tuple[_Place, _Place]:
    return _place_of(settlement.pairing.a), _place_of(settlement.pairing.b)


def _claims(tournament: Tournament) -> tuple[_Claim, ...]:
    """Return the responses that have p_correct, by roster, then bank."""
    asked = (
        planned_response(tournament, entrant, prompt)
        for entrant in tournament.roster
        for prompt in tournament.bank
    )
    answered = ((cell, tournament.responses.get(cell.response_key)) for cell in asked)
    return tuple(
        _Claim(
            _place_of(cell),
            response.p_correct,
            response.text,
            cell.prompt.gold_answer,
        )
        for cell, response in answered
        if response is not None
        and response.p_correct is not None
        and response not in tournament.redactions
    )


def _calibrations(
    claims: Sequence[_Claim],
    correctness: Mapping[_Place, float],
    dimension: Dimension | None = None,
) -> Iterator[Calibration]:
    for entrant_id, group in groupby(claims, key=lambda claim: claim.place[0]):
        own = tuple(group)
        cases = tuple(
            Case(claim.p_correct, correctness[claim.place])
            for claim in own
            if claim.place in correctness
        )
        yield Calibration(entrant_id, dimension, cases, n_left_out=len(own) - len(cases))
