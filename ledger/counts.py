"""Counts of what a stream has on record, made by SQLite without decoding events."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from ledger.identity import StreamId
from ledger.reader import Columns, LedgerReader
from ledger.storage.schema import COUNTED
from ledger.storage.tail import kinds_until
from ledger.store import Ledger


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


_COUNTED_TYPES: Final = ("PairReconciled", "ResponseGenerated")  # of which more is told than that
_OTHER_TYPES: Final = (
    "VerdictReceived",
    "SampleObserved",
    "ResponseFailed",
    "JudgeQueryFailed",
    "SampleUnscorable",
    "JudgeBatchPlanned",
    "ScoreQuerySubmitted",
)
_BY_WHAT_IS_COUNTED: Final = (
    "SELECT counted, count(*) FROM event_kind"
    " WHERE stream = ? AND type = ? AND position > ? AND position <= ?{} GROUP BY counted"
).format
_BETWEEN: Final = " AND counted >= ? AND counted < ?"
_EDGES: Final = (b"", b"b", b"inc", b"tie", b"\xff")  # of outcomes
_IN_RANGE: Final = (
    "SELECT '', count(*) FROM event_kind WHERE stream = ? AND type = ? AND counted = ''"
    " AND position > ? AND position <= ?"
)
_NEWEST: Final = (
    f"SELECT stream, type, {COUNTED} AS counted, count(*) FROM event"  # noqa: S608 (a constant)
    " WHERE position > ? AND position <= ? GROUP BY stream, type, counted"
)
_OF_SCORES: Final = (
    "SELECT count(*) FROM event WHERE position IN (SELECT value FROM json_each(?))"
    " AND CAST(data AS TEXT) ->> '$.query_key' IN (SELECT CAST(data AS TEXT) ->> '$.query_key'"
    " FROM event WHERE position IN (SELECT value FROM json_each(?)))"
)
_LONG: Final = 200_000  # events: fewer are counted before a thread has begun
_RANGE: Final = 500_000  # events
_N_READERS: Final = 8  # at a time: the table lies scattered on the disk, which serves several


class _TypeRange(NamedTuple):
    """Events of a stream and a type in a range of positions, or of what is counted, too."""

    stream: StreamId
    type: str
    after: int
    until: int
    values: tuple[bytes, bytes] | None = None  # what is counted is from one to another


Counted: TypeAlias = list[tuple[_TypeRange, list[Columns]]]


def counts_of(
    ledger: LedgerReader, streams: Sequence[StreamId], until: int, *, long: int = _LONG
) -> dict[StreamId, StreamCounts]:
    """Count the events of some streams up to a position.

    Outcomes that a later correction replaced still count.

    Args:
        ledger: Open; a long one is read by several threads.
        streams: The streams.
        until: The position.
        long: The fewest events of a long ledger.

    Raises:
        CannotRead: The file is damaged.
    """
    in_table = min(until, kinds_until(ledger.head.position))
    ranges = [each for stream in streams for each in _ranges_of(stream, in_table)]
    is_long = until >= long and ledger.path.exists()  # else it may be in memory
    found = _counted_by_threads(ledger.path, ranges) if is_long else _counted(ledger, ranges)
    of: defaultdict[StreamId, dict[str, Counter[Any]]]
    of = defaultdict(lambda: defaultdict(Counter))
    for each, rows in found:
        of[each.stream][each.type].update(dict(rows))
    for stream, type_, counted, n in ledger.select(_NEWEST, in_table, until):
        of[stream][type_].update({counted: n})
    return {stream: _counts(ledger, stream, until, of[stream]) for stream in streams}


def _ranges_of(stream: StreamId, until: int) -> Iterator[_TypeRange]:
    for values in pairwise(_EDGES):
        yield _TypeRange(stream, "PairReconciled", 0, until, values)
    yield _TypeRange(stream, "ResponseGenerated", 0, until)
    for type_ in _OTHER_TYPES:
        for after in range(0, until, _RANGE):
            yield _TypeRange(stream, type_, after, min(until, after + _RANGE))


def _counted(ledger: LedgerReader, ranges: Iterable[_TypeRange]) -> Counted:
    return [(each, ledger.select(*_query(each))) for each in ranges]


def _query(of: _TypeRange) -> Sequence[Any]:
    """Return an SQL query and its parameters."""
    *where, values = of
    if of.type not in _COUNTED_TYPES:
        return _IN_RANGE, *where
    if values is None:
        return _BY_WHAT_IS_COUNTED(""), *where
    return _BY_WHAT_IS_COUNTED(_BETWEEN), *where, *values


def _counted_by_threads(path: Path, ranges: Sequence[_TypeRange]) -> Counted:
    with ThreadPoolExecutor(_N_READERS) as pool:
        shares = (ranges[n::_N_READERS] for n in range(_N_READERS))
        return [*chain.from_iterable(pool.map(partial(_counted_apart, path), shares))]


def _counted_apart(path: Path, ranges: Iterable[_TypeRange]) -> Counted:
    with Ledger.read_only(path) as again:
        return _counted(again, ranges)


def _positions(ledger: LedgerReader, stream: StreamId, type_: str, until: int) -> bytes:
    """Return where a stream's events of a type are, as JSON."""
    return msgspec.json.encode(ledger.positions([stream], {type_}, 0, until))


def _counts(
    ledger: LedgerReader, stream: StreamId, until: int, of: Mapping[str, Counter[Any]]
) -> StreamCounts:
    outcomes, responses = of["PairReconciled"], of["ResponseGenerated"]
    failed = of["JudgeQueryFailed"].total()
    if failed and of["ScoreQuerySubmitted"].total():
        [(of_scores,)] = ledger.select(
            _OF_SCORES,
            _positions(ledger, stream, "JudgeQueryFailed", until),
            _positions(ledger, stream, "ScoreQuerySubmitted", until),
        )
        failed -= of_scores
    return StreamCounts(
        responses=responses.total(),
        responses_failed=of["ResponseFailed"].total(),
        tokens=sum(n * times for n, times in responses.items()),
        verdicts=of["VerdictReceived"].total(),
        without_verdict=failed,
        reconciled=outcomes.total(),
        tied=outcomes[b"tie"],
        inconsistent=outcomes[b"inc"],
        samples=of["SampleObserved"].total(),
        unscorable=of["SampleUnscorable"].total(),
        batches=of["JudgeBatchPlanned"].total(),
    )
