"""Counts of what a stream has on record, made by SQLite without decoding events."""

from collections import Counter, defaultdict
from typing import Any, Final, NamedTuple

from ledger.identity import StreamId
from ledger.reader import LedgerReader
from ledger.storage.schema import COUNTED


class StreamCounts(NamedTuple):
    """How many events of each kind a stream has."""

    responses: int
    responses_failed: int
    tokens: int  # generated, in all responses together
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


_COUNTS: Final = (
    f"SELECT type, {COUNTED} AS counted, count(*) FROM event"  # noqa: S608 (a constant)
    " WHERE stream = ? AND position <= ? GROUP BY type, counted"
)
_OF_SCORES: Final = (
    "SELECT count(*) FROM event WHERE stream = ?1 AND position <= ?2 AND type = 'JudgeQueryFailed'"
    " AND CAST(data AS TEXT) ->> '$.query_key' IN (SELECT CAST(data AS TEXT) ->> '$.query_key'"
    " FROM event WHERE stream = ?1 AND type = 'ScoreQuerySubmitted')"
)


def counts_of(ledger: LedgerReader, stream: StreamId, until: int) -> StreamCounts:
    """Count a stream's events up to a position.

    Outcomes that a later correction replaced still count.

    Raises:
        CannotRead: The file is damaged.
    """
    counted: defaultdict[str, dict[Any, int]] = defaultdict(dict)
    for type_, what, n_events in ledger.select(_COUNTS, stream, until):
        counted[type_][what] = n_events
    of = Counter({type_: sum(each.values()) for type_, each in counted.items()})
    outcomes, failed = counted["PairReconciled"], of["JudgeQueryFailed"]
    if failed and of["ScoreQuerySubmitted"]:
        [(of_scores,)] = ledger.select(_OF_SCORES, stream, until)
        failed -= of_scores
    return StreamCounts(
        responses=of["ResponseGenerated"],
        responses_failed=of["ResponseFailed"],
        tokens=sum(n * times for n, times in counted["ResponseGenerated"].items()),
        verdicts=of["VerdictReceived"],
        without_verdict=failed,
        reconciled=of["PairReconciled"],
        tied=outcomes.get("tie", 0),
        inconsistent=outcomes.get("inc", 0),
        samples=of["SampleObserved"],
        unscorable=of["SampleUnscorable"],
        batches=of["JudgeBatchPlanned"],
    )
