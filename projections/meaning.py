"""What the events mean, checked: does each follow from what it cites?

The hash chain proves that nothing was changed since it was recorded. This asks whether it was
right to record it: every answer answers a question, every verdict is what its reply says, every
outcome follows from its two verdicts.
"""

from collections.abc import Iterator

from ledger.events.event import Event
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    Verdict,
    VerdictReceived,
)
from ledger.events.registration import Registered
from ledger.identity import Digest
from projections.reconcile import POLICIES
from projections.verdict_line import PARSERS


class Meaning:
    """Checks events in order of position; keeps what later ones may cite."""

    def __init__(self) -> None:
        self._asked: set[Digest] = set()
        self._verdicts: dict[Digest, Verdict] = {}

    def faults_of(self, event: Event) -> Iterator[str]:
        """Yield what does not follow, in words; a sound event has nothing."""
        match event:
            case VerdictReceived():
                yield from self._faults_of_verdict(event)
                self._verdicts[event.query_key] = event.verdict
            case JudgeQuerySubmitted():
                self._asked.add(event.query_key)
            case PairReconciled():
                yield from self._faults_of_outcome(event)
            case JudgeQueryFailed():
                yield from self._faults_of_answer(event.query_key)
            case Registered():
                yield from _faults_of_registration(event)
            case _:
                return

    def _faults_of_answer(self, query_key: Digest) -> Iterator[str]:
        if query_key not in self._asked:
            yield f"it answers query {query_key[:12]}, which was not submitted before it"

    def _faults_of_verdict(self, event: VerdictReceived) -> Iterator[str]:
        yield from self._faults_of_answer(event.query_key)
        parse = PARSERS.get(event.parser)
        if parse is None:
            yield f"no parser is named {event.parser!r}; a later tourney may know it"
        elif (read := parse(event.reply)) != event.verdict:
            yield f"its reply says {read}, and it claims {event.verdict}"

    def _faults_of_outcome(self, event: PairReconciled) -> Iterator[str]:
        cited = ((event.forward, "forward"), (event.swapped, "swapped"))
        missing = [(key, order) for key, order in cited if key not in self._verdicts]
        for key, order in missing:
            yield f"its {order} query {key[:12]} had no verdict before it"
        if not missing:
            yield from self._faults_of_policy(event)

    def _faults_of_policy(self, event: PairReconciled) -> Iterator[str]:
        policy = POLICIES.get(event.policy)
        forward, swapped = self._verdicts[event.forward], self._verdicts[event.swapped]
        if policy is None:
            yield f"no policy is named {event.policy!r}; a later tourney may know it"
        elif (outcome := policy(forward, swapped)) != event.outcome:
            yield (
                f"{event.policy} makes {outcome!r} of verdicts {forward} and {swapped},"
                f" and it claims {event.outcome!r}"
            )


def _faults_of_registration(event: Registered) -> Iterator[str]:
    if event.thing.content_digest != event.digest:
        yield "its digest is not that of what it registers"
