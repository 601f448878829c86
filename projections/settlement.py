"""What became of every planned pairing: nothing is lost without a name.

planned = decided + tie + inconsistent + failed (by reason) + pending, always.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from ledger.events.judging import FailureReason, Outcome
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, EntrantId, Json, PromptId
from projections.matches import Match, Pairing, match_of, pairings, response_status
from projections.reconcile import DEFAULT_POLICY
from projections.tournament import Tournament

Status: TypeAlias = Outcome | FailureReason | Literal["no_response", "pending"]
FAILURES = (*get_args(FailureReason), "no_response")


class Settlement(NamedTuple):
    """A pairing and what became of it; match is None while a response is missing."""

    pairing: Pairing
    match: Match | None
    status: Status

    @property
    def winner(self) -> EntrantId | None:
        """The entrant that won, if one did."""
        winners = {"a": self.pairing.a, "b": self.pairing.b}
        cell = winners.get(self.status)
        return None if cell is None else cell.entrant.entrant_id


@dataclass(frozen=True)
class Account:
    """The count of a dimension's pairings by what became of them."""

    planned: int
    decided: int
    tie: int
    inconsistent: int
    failed: tuple[tuple[str, int], ...]  # (reason, count), only reasons that occurred
    pending: int

    @property
    def n_failed(self) -> int:
        """How many pairings have no verdict for a reason that is on record."""
        return sum(count for _, count in self.failed)

    def sentence(self) -> str:
        """Say it; the parts add up to what was planned."""
        failed = "".join(f" + {count} {reason}" for reason, count in self.failed)
        return (
            f"{self.planned} pairs = {self.decided} decided + {self.tie} tied"
            f" + {self.inconsistent} inconsistent{failed} + {self.pending} pending"
        )

    def fields(self) -> Mapping[str, Json]:
        """Return it as JSON."""
        return {**asdict(self), "failed": dict(self.failed)}


def settle(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    policy: str = DEFAULT_POLICY,
) -> tuple[Settlement, ...]:
    """Say of every planned pairing what became of it, in the order of the match list."""
    return tuple(
        _settlement(tournament, pairing, judge, policy) for pairing in pairings(tournament, prompts)
    )


def account_of(settlements: Iterable[Settlement]) -> Account:
    """Count settlements by what became of them."""
    counts = Counter(settlement.status for settlement in settlements)
    return Account(
        planned=counts.total(),
        decided=counts["a"] + counts["b"],
        tie=counts["tie"],
        inconsistent=counts["inconsistent"],
        failed=tuple((reason, counts[reason]) for reason in FAILURES if counts[reason]),
        pending=counts["pending"],
    )


def by_dimension(
    tournament: Tournament, settlements: Iterable[Settlement]
) -> dict[Dimension, tuple[Settlement, ...]]:
    """Group settlements by dimension, in the tournament's order, empty ones included."""
    groups: dict[Dimension, list[Settlement]] = {
        rubric.dimension: [] for rubric in tournament.dimensions
    }
    for settlement in settlements:
        groups[settlement.pairing.rubric.dimension].append(settlement)
    return {dimension: tuple(group) for dimension, group in groups.items()}


def _settlement(
    tournament: Tournament, pairing: Pairing, judge: JudgeSettings, policy: str
) -> Settlement:
    match = match_of(tournament, pairing, judge)
    if match is None:
        return Settlement(pairing, None, _unanswered(tournament, pairing))
    outcome = tournament.outcomes.get(match.key(judge.judge_id, policy))
    return Settlement(pairing, match, outcome or _unjudged(tournament, match))


def _unanswered(tournament: Tournament, pairing: Pairing) -> Status:
    statuses = {response_status(tournament, cell) for cell in (pairing.a, pairing.b)}
    return "no_response" if "failed" in statuses else "pending"


def _unjudged(tournament: Tournament, match: Match) -> Status:
    for question in (match.forward, match.swapped):
        failure = tournament.query_failures.get(question.query_key)
        if failure is not None and question.query_key not in tournament.verdicts:
            return failure.reason
    return "pending"
