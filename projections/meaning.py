"""What the events mean, checked: does each follow from what it cites?

The hash chain proves that nothing was changed since it was recorded. This asks whether it was
right to record it: every answer answers a question, every verdict is what its reply says, every
outcome follows from its two verdicts.
"""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import product

from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    Verdict,
    VerdictReceived,
)
from ledger.events.registration import Registered
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.evaluation_meaning import EvaluationMeaning
from projections.reconcile import POLICIES
from projections.tournament import BatchEvent
from projections.verdict_line import PARSERS


class Meaning:
    """Checks events in order of position; keeps what later ones may cite."""

    def __init__(self) -> None:
        self._asked: set[Digest] = set()
        self._planned: set[Digest] = set()  # by batch key, as those submitted
        self._submitted: set[Digest] = set()
        self._verdicts: defaultdict[StreamId, dict[Digest, Verdict]] = defaultdict(dict)
        self._evaluations = EvaluationMeaning()
        self._paid_for: defaultdict[StreamId, set[Digest]] = defaultdict(set)

    def faults_of(self, recorded: Recorded) -> Sequence[str]:
        """Return what does not follow, in words; a sound event has nothing."""
        event = recorded.event
        match event:
            case VerdictReceived():
                faults = self._faults_of_verdict(event)
                faults += self._faults_of_paying(recorded.stream, event.query_key)
                self._verdicts[recorded.stream][event.query_key] = event.verdict
                return faults
            case JudgeQuerySubmitted():
                self._asked.add(event.query_key)
                return _faults_of_citing(event.batch_key, self._submitted, "submitted")
            case PairReconciled():
                return self._faults_of_outcome(event, recorded.stream)
            case ResponseGenerated():
                return self._faults_of_paying(recorded.stream, event.response_key)
            case JudgeQueryFailed():
                return self._faults_of_answer(event.query_key)
            case Registered():
                return _faults_of_registration(event)
            case (
                JudgeBatchPlanned()
                | JudgeBatchSubmitted()
                | JudgeBatchNotCreated()
                | JudgeBatchEnded()
            ):
                return self._faults_of_batch(event)
            case _:
                return self._evaluations.faults_of(recorded)

    def _faults_of_paying(self, stream: StreamId, key: Digest) -> list[str]:
        """Merged tournaments may each have paid for the same; one pays once."""
        paid_for = self._paid_for[stream]  # response and query keys
        if key not in paid_for:
            paid_for.add(key)
            return []
        return ["the same was recorded before, and paid for"]

    def _faults_of_answer(self, query_key: Digest) -> list[str]:
        if query_key in self._asked:
            return []
        return [f"it answers query {query_key[:12]}, which was not submitted before it"]

    def _faults_of_verdict(self, event: VerdictReceived) -> list[str]:
        faults = self._faults_of_answer(event.query_key)
        parse = PARSERS.get(event.parser)
        if parse is None:
            faults.append(f"no parser is named {event.parser!r}; a later tourney may know it")
        elif (read := parse(event.reply)) != event.verdict:
            faults.append(f"its reply says {read}, and it claims {event.verdict}")
        return faults

    def _faults_of_batch(self, event: BatchEvent) -> list[str]:
        match event:
            case JudgeBatchPlanned():
                self._planned.add(event.batch_key)
            case JudgeBatchSubmitted():
                self._submitted.add(event.batch_key)
        return _faults_of_citing(event.batch_key, self._planned, "planned")

    def _given(self, query_key: Digest, stream: StreamId) -> tuple[Verdict, ...]:
        """Return a tournament's own verdict, else those of the others, any of which may serve."""
        own = self._verdicts[stream].get(query_key)
        if own is not None:
            return (own,)
        return tuple(said[query_key] for said in self._verdicts.values() if query_key in said)

    def _faults_of_outcome(self, event: PairReconciled, stream: StreamId) -> list[str]:
        if event.basis == "identical":
            return _faults_of_identity(event)
        forward, swapped = self._given(event.forward, stream), self._given(event.swapped, stream)
        if forward and swapped:
            return _faults_of_policy(event, list(product(forward, swapped)))
        cited = (("forward", event.forward, forward), ("swapped", event.swapped, swapped))
        return [
            f"its {order} query {key[:12]} had no verdict before it"
            for order, key, given in cited
            if not given
        ]


def _faults_of_citing(key: Digest | None, known: AbstractSet[Digest], what: str) -> list[str]:
    """A batch is planned, then sent, and only then are its queries asked or its end known."""
    if key is None or key in known:
        return []
    return [f"its batch {key[:12]} was not {what} before it"]


def _faults_of_policy(event: PairReconciled, given: Sequence[tuple[Verdict, Verdict]]) -> list[str]:
    policy = POLICIES.get(event.policy)
    if policy is None:
        return [f"no policy is named {event.policy!r}; a later tourney may know it"]
    if any(policy(*verdicts) == event.outcome for verdicts in given):
        return []
    made = " or ".join(
        f"{policy(*verdicts)!r} of verdicts {' and '.join(verdicts)}" for verdicts in given
    )
    return [f"{event.policy} makes {made}, and it claims {event.outcome!r}"]


def _faults_of_identity(event: PairReconciled) -> list[str]:
    """Two identical responses put one question in both orders, and are a tie."""
    if event.forward != event.swapped:
        return ["it claims a tie of identical responses, and its two questions differ"]
    if event.outcome != "tie":
        return [f"it claims {event.outcome!r} of identical responses, which tie"]
    return []


def _faults_of_registration(event: Registered) -> list[str]:
    if event.thing.content_digest == event.digest:
        return []
    return ["its digest is not that of what it registers"]
