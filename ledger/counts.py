"""Counts of what a stream has on record: of most events only how many, of some what they say."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ledger.events.judging import JudgeQueryFailed, PairReconciled, ScoreQuerySubmitted
from ledger.events.registry import AnyFact
from ledger.events.responses import ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.reader import LedgerReader


class StreamCounts(NamedTuple):
    """How many events of each kind a stream has."""

    responses: int
    responses_failed: int
    tokens: int  # generated, in all responses together whose server counted them
    verdicts: int
    without_verdict: int  # queries about a pair; one about a score is no verdict either way
    reconciled: int
    tied: int
    inconsistent: int
    samples: int
    unscorable: int
    batches: int  # planned

    @property
    def decided(self) -> int:
        """How many pairs one entrant won."""
        return self.reconciled - self.tied - self.inconsistent


_FAILED: Final = type_name(JudgeQueryFailed)
_BY_TYPE: Final = (
    "SELECT stream, type, count(*) FROM event WHERE position <= ? GROUP BY type, stream"
)


def counts_of(
    ledger: LedgerReader, streams: Sequence[StreamId], until: int
) -> dict[StreamId, StreamCounts]:
    """Count the events of some streams up to a position.

    Outcomes that a later correction replaced still count.

    Raises:
        UnreadableEvent: An event's type, version, shape or time is unknown.
        CannotRead: The file is damaged.
    """
    n_events: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for stream, type_, number in ledger.select(_BY_TYPE, until):
        n_events[stream][type_] = number
    return {stream: _counts(ledger, stream, until, n_events[stream]) for stream in streams}


def _counts(
    ledger: LedgerReader, stream: StreamId, until: int, n_events: Counter[str]
) -> StreamCounts:
    outcomes = Counter[str](
        event.outcome for event in _events(ledger, stream, PairReconciled, until)
    )
    responses = _events(ledger, stream, ResponseGenerated, until)
    return StreamCounts(
        responses=n_events["ResponseGenerated"],
        responses_failed=n_events["ResponseFailed"],
        tokens=sum(event.n_generated_tokens or 0 for event in responses),
        verdicts=n_events["VerdictReceived"],
        without_verdict=_n_without_verdict(ledger, stream, until) if n_events[_FAILED] else 0,
        reconciled=outcomes.total(),
        tied=outcomes["tie"],
        inconsistent=outcomes["inconsistent"],
        samples=n_events["SampleObserved"],
        unscorable=n_events["SampleUnscorable"],
        batches=n_events["JudgeBatchPlanned"],
    )


def _n_without_verdict(ledger: LedgerReader, stream: StreamId, until: int) -> int:
    """Count the failures of queries about a pair."""
    queries = _events(ledger, stream, ScoreQuerySubmitted, until)
    of_scores = {query.query_key for query in queries}
    failures = _events(ledger, stream, JudgeQueryFailed, until)
    return sum(failure.query_key not in of_scores for failure in failures)


def _events(
    ledger: LedgerReader, stream: StreamId, of: type[AnyFact], until: int
) -> Iterator[AnyFact]:
    """Yield a stream's events of a type."""
    events = ledger.read(stream=stream, types={type_name(of)}, until=until)
    return (recorded.event for recorded in events if isinstance(recorded.event, of))
