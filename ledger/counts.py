"""Counts of what a stream has on record, made by SQLite without decoding events."""

from typing import Final, NamedTuple

from ledger.identity import StreamId
from ledger.reader import LedgerReader


class StreamCounts(NamedTuple):
    """How many events of each kind a stream has."""

    responses: int
    responses_failed: int
    tokens: int  # generated, in all responses together
    verdicts: int
    without_verdict: int
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


# A pass over a million events is most of what the answer takes: only outcomes and responses are
# parsed, and queries, the most frequent of all, are left out first.
_COUNTS: Final = """
SELECT
  count(*) FILTER (WHERE type = 'ResponseGenerated'),
  count(*) FILTER (WHERE type = 'ResponseFailed'),
  coalesce(sum(CASE type WHEN 'ResponseGenerated'
    THEN json_extract(text, '$.n_generated_tokens') END), 0),
  count(*) FILTER (WHERE type = 'VerdictReceived'),
  count(*) FILTER (WHERE type = 'JudgeQueryFailed'),
  count(*) FILTER (WHERE type = 'PairReconciled'),
  count(*) FILTER (
    WHERE type = 'PairReconciled' AND json_extract(text, '$.outcome') = 'tie'),
  count(*) FILTER (
    WHERE type = 'PairReconciled' AND json_extract(text, '$.outcome') = 'inconsistent'),
  count(*) FILTER (WHERE type = 'SampleObserved'),
  count(*) FILTER (WHERE type = 'SampleUnscorable'),
  count(*) FILTER (WHERE type = 'JudgeBatchPlanned')
FROM (
  SELECT type, CAST(data AS TEXT) AS text FROM event
  WHERE stream = ? AND position <= ? AND type <> 'JudgeQuerySubmitted')
"""


def counts_of(ledger: LedgerReader, stream: StreamId, until: int) -> StreamCounts:
    """Count a stream's events up to a position.

    Outcomes that a later correction replaced still count.

    Raises:
        CannotRead: The file is damaged.
    """
    [counts] = ledger.select(_COUNTS, stream, until)
    return StreamCounts._make(counts)
