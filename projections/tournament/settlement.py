"""Settlement: the outcome or status of every planned pairing, and their counts.

planned = decided + tie + inconsistent + failed (by reason) + pending, always.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from ledger.events.judging import FailureReason, JudgeQueryFailed, Order, Outcome, Verdict
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, Dimension, EntrantId, Json, PromptId
from projections.tournament.matches import (
    Match,
    Pairing,
    PlannedResponse,
    match_of,
    pairings,
    response_status,
)
from projections.tournament.state import Tournament
from projections.verdicts import policies
from projections.verdicts.parsers import BLIND_TO_STOPS, PARSERS
from projections.verdicts.queries import JudgeQuery

_CUT_SHORT: Final = frozenset({"refused", "truncated"})  # what is there is not the whole reply


def verdict_of(tournament: Tournament, query_key: Digest, parser: str | None) -> Verdict | None:
    """Return the verdict on a query, or None if there is none.

    A parser's full name reads the stored reply again: the one that gave a verdict, else the newest.
    """
    if parser is None:
        given = tournament.verdicts.get(query_key)
        return given.event.verdict if given else None
    reply = reply_of(tournament, query_key, parser)
    return None if reply is None else PARSERS[parser](reply)


def reply_of(tournament: Tournament, query_key: Digest, parser: str) -> str | None:
    """Return the stored reply for a parser to read again, or None if there is none."""
    given = tournament.verdicts.get(query_key)
    if given is not None:
        return given.event.reply
    failure = tournament.query_failures.get(query_key)
    return failure.reply if failure is not None and _is_whole(failure, parser) else None


def failure_of(tournament: Tournament, query_key: Digest) -> FailureReason | None:
    """Return why an answered query has no verdict; None if it was not answered."""
    if query_key in tournament.verdicts:
        return "unreadable"  # by the parser that reads it now
    failure = tournament.query_failures.get(query_key)
    return failure.reason if failure else None


def _is_whole(failure: JudgeQueryFailed, parser: str) -> bool:
    """Say whether there is a reply that is complete for a parser."""
    return bool(failure.reply) and (failure.reason not in _CUT_SHORT or parser in BLIND_TO_STOPS)


Status: TypeAlias = Outcome | FailureReason | Literal["abstained", "no_response", "pending"]
FAILURES = (*get_args(FailureReason), "abstained", "no_response")
_OUTCOMES: Final[Mapping[str, Outcome]] = {each: each for each in get_args(Outcome)}
_SCORES: Final[Mapping[str, float]] = {"a": 1.0, "b": 0.0, "tie": 0.5}
Key = TypeVar("Key", bound=Hashable)


class Settlement(NamedTuple):
    """A pairing with its outcome or status; match is None while a response is missing."""

    pairing: Pairing
    match: Match | None
    status: Status
    order: Order | None = None  # where each order counts for itself

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, if there is one."""
        return _OUTCOMES.get(self.status)

    @property
    def score(self) -> float | None:
        """What a took: 1, 0, or 1/2 of a tie; None unless the pairing was decided or tied."""
        return _SCORES.get(self.status)

    @property
    def winner(self) -> EntrantId | None:
        """The entrant that won, if any."""
        winners = {"a": self.pairing.a, "b": self.pairing.b}
        cell = winners.get(self.status)
        return None if cell is None else cell.entrant.entrant_id


@dataclass(frozen=True)
class Account:
    """Counts of a dimension's pairings, or of their orders, by status."""

    planned: int
    decided: int
    tie: int
    inconsistent: int
    failed: tuple[tuple[str, int], ...]  # (reason, count), only reasons that occurred
    pending: int
    counted: Literal["pairs", "orders"] = "pairs"

    @property
    def n_failed(self) -> int:
        """How many pairings have no verdict for a recorded reason."""
        return sum(count for _, count in self.failed)

    def sentence(self) -> str:
        """Return the counts as a sum that equals the number planned."""
        failed = "".join(f" + {count} {reason}" for reason, count in self.failed)
        return (
            f"{self.planned} {self.counted} = {self.decided} decided + {self.tie} tied"
            f" + {self.inconsistent} inconsistent{failed} + {self.pending} pending"
        )

    def fields(self) -> Mapping[str, Json]:
        """Return the counts as JSON."""
        counts = {**asdict(self), "failed": dict(self.failed)}
        del counts["counted"]  # the rule says it
        return counts


def settle(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    rule: policies.Rule = policies.RECORDED,
) -> tuple[Settlement, ...]:
    """Settle every planned pairing under a rule, in match order.

    Under `concatenate` each pairing is there twice, once per order. Two identical responses that
    were recorded as a tie are one under every rule.

    Raises:
        KeyError: The rule's policy needs more than one judge.
    """
    planned = pairings(tournament, prompts)
    if rule.is_recorded:
        return tuple(_recorded(tournament, pairing, judge, rule.policy) for pairing in planned)
    return tuple(
        settlement
        for pairing in planned
        for settlement in _read_again(tournament, pairing, judge, rule)
    )


def account_of(settlements: Iterable[Settlement]) -> Account:
    """Count settlements by status."""
    settlements = tuple(settlements)
    counts = Counter(settlement.status for settlement in settlements)
    return Account(
        planned=counts.total(),
        decided=counts["a"] + counts["b"],
        tie=counts["tie"],
        inconsistent=counts["inconsistent"],
        failed=tuple((reason, counts[reason]) for reason in FAILURES if counts[reason]),
        pending=counts["pending"],
        counted="orders" if any(settlement.order for settlement in settlements) else "pairs",
    )


def by_dimension(
    tournament: Tournament, settlements: Iterable[Settlement]
) -> dict[Dimension, tuple[Settlement, ...]]:
    """Group settlements by dimension, in the tournament's order, empty groups included."""
    groups: dict[Dimension, list[Settlement]] = {
        rubric.dimension: [] for rubric in tournament.dimensions
    }
    for settlement in settlements:
        groups[settlement.pairing.rubric.dimension].append(settlement)
    return {dimension: tuple(group) for dimension, group in groups.items()}


def decided_or_tied(settlements: Iterable[Settlement]) -> list[Settlement]:
    """Return the settlements that were decided or tied, in order."""
    return [each for each in settlements if each.score is not None]


def win_shares(
    settlements: Iterable[Settlement], key: Callable[[PlannedResponse], Key]
) -> dict[Key, float]:
    """Return the share of decided and tied pairs that the responses of each key took."""
    scores: defaultdict[Key, list[float]] = defaultdict(list)
    for each in settlements:
        if each.score is not None:
            scores[key(each.pairing.a)].append(each.score)
            scores[key(each.pairing.b)].append(1.0 - each.score)
    return {taken_by: fmean(taken) for taken_by, taken in scores.items()}


def _recorded(
    tournament: Tournament, pairing: Pairing, judge: JudgeSettings, policy: str
) -> Settlement:
    match = match_of(tournament, pairing, judge)
    if match is None:
        return Settlement(pairing, None, _unanswered(tournament, pairing))
    outcome = tournament.outcomes.get(match.key(judge.judge_id, policy))
    return Settlement(
        pairing, match, outcome or _unjudged(tournament, (match.forward, match.swapped))
    )


def _read_again(
    tournament: Tournament, pairing: Pairing, judge: JudgeSettings, rule: policies.Rule
) -> Iterator[Settlement]:
    match = match_of(tournament, pairing, judge)
    orders: tuple[Order | None, ...] = (
        ("forward", "swapped") if rule.policy == policies.CONCATENATE else (None,)
    )
    for order in orders:
        if match is None:
            status = _unanswered(tournament, pairing)
        elif _is_tie_unasked(tournament, match, judge):
            status = "tie"
        elif order is None:
            status = _of_pair(tournament, match, rule)
        else:
            status = _of_order(tournament, match, order, rule)
        yield Settlement(pairing, match, status, order)


def _is_tie_unasked(tournament: Tournament, match: Match, judge: JudgeSettings) -> bool:
    """Say whether identical responses were recorded as a tie."""
    recorded = tournament.outcomes.get(match.key(judge.judge_id, policies.DEFAULT_POLICY))
    return match.is_identical and recorded == "tie"


def _of_pair(tournament: Tournament, match: Match, rule: policies.Rule) -> Status:
    forward = verdict_of(tournament, match.forward.query_key, rule.parser)
    swapped = verdict_of(tournament, match.swapped.query_key, rule.parser)
    if forward is None or swapped is None:
        return _unjudged(tournament, (match.forward, match.swapped), rule.parser)
    if rule.policy == policies.ABSTAIN_ON_FLIP:
        return policies.abstain_on_flip(forward, swapped) or "abstained"
    return policies.POLICIES[rule.policy](forward, swapped)


def _of_order(tournament: Tournament, match: Match, order: Order, rule: policies.Rule) -> Status:
    question = match.forward if order == "forward" else match.swapped
    verdict = verdict_of(tournament, question.query_key, rule.parser)
    if verdict is None:
        return _unjudged(tournament, (question,), rule.parser)
    return policies.outcome_of_order(verdict, order)


def _unanswered(tournament: Tournament, pairing: Pairing) -> Status:
    statuses = {response_status(tournament, cell) for cell in (pairing.a, pairing.b)}
    return "no_response" if "failed" in statuses else "pending"


def _unjudged(
    tournament: Tournament, questions: Iterable[JudgeQuery], parser: str | None = None
) -> Status:
    """Return the first failure among queries, unless one of them is in flight."""
    for question in questions:
        key = question.query_key
        if key in tournament.in_flight:
            return "pending"
        if verdict_of(tournament, key, parser) is None and (why := failure_of(tournament, key)):
            return why
    return "pending"
