"""Spend: what judges and endpoint entrants cost, at the prices of their time.

Judges' replies are added up by judge, dimension and day, and requests to entrants by entrant.

A request that may have been billed, and of which no tokens are known, is counted apart, at its
worst: it has no reply, or the server did not say how many tokens its reply took.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Final, NamedTuple

from immutables import Map

from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    QuerySubmitted,
    ReplyRead,
    ScoreQuerySubmitted,
    ScoreReceived,
    VerdictReceived,
)
from ledger.events.money import Price, Usage, cost_usd
from ledger.events.registration import JudgeRegistered, JudgeSettings
from ledger.events.registry import Event
from ledger.events.requests import RequestsSettled, RequestsSubmitted
from ledger.identity import Digest, Dimension, JudgeId, StreamId
from ledger.recorded import Recorded, moment
from projections.fold import Projection
from projections.tournament.requests import (
    NO_REQUESTS,
    Bill,
    EntrantRequests,
    evolve_requests,
    perhaps,
)

_FREE: Final = frozenset({"reference", "hf"})  # they run on the user's machine


class SpendKey(NamedTuple):
    """A judge, a dimension and a day in UTC."""

    judge: JudgeId
    dimension: Dimension | None  # or the evaluation; None: the query was never submitted
    day: date


class UnderWay(NamedTuple):
    """Where a request will be billed that has not ended, and what it may cost."""

    key: SpendKey
    worst_usd: float | None  # None: nobody knows the price


@dataclass(frozen=True)
class Spend:
    """A tournament's bills by judge, dimension and day, and those of its endpoint entrants."""

    stream: StreamId
    settled: Map[SpendKey, Bill] = Map()  # requests that ended
    under_way: Map[Digest, UnderWay] = Map()  # requests sent alone that have not, by query key
    dimensions: Mapping[Digest, Dimension] = Map()  # by query key: a dict, since they are many
    free: frozenset[JudgeId] = frozenset()
    entrants: EntrantRequests = NO_REQUESTS

    @property
    def bills(self) -> Mapping[SpendKey, Bill]:
        """All bills of judges, in order; a request that has not ended may have been billed.

        Its process has died, or waits for the answer.
        """
        bills = dict(self.settled)
        for key, worst_usd in self.under_way.values():
            bills[key] = bills.get(key, Bill()) + perhaps(worst_usd)
        return dict(sorted(bills.items(), key=lambda bill: _place(bill[0])))

    @property
    def total(self) -> Bill:
        """The sum of judges' bills."""
        return sum(self.bills.values(), Bill())


def _place(key: SpendKey) -> tuple[JudgeId, str, date]:
    return key.judge, key.dimension or "", key.day


def is_free(judge: JudgeSettings) -> bool:
    """Say whether a judge runs on the user's machine."""
    return judge.provider in _FREE


def spend_of(stream: StreamId) -> Projection[Spend]:
    """Return the projection to a tournament's spend."""
    return Projection(initial=Spend(stream), advance=advance)


def advance(spend: Spend, events: Iterable[Recorded]) -> Spend:
    """Return the spend after more events, in order."""
    draft = SpendDraft(spend)
    for recorded in events:
        if recorded.stream == spend.stream:
            draft.add(recorded.recorded_us, recorded.event)
    return draft.finish()


class SpendDraft:
    """A spend while events of its tournament are added to it; changed in place."""

    def __init__(self, spend: Spend) -> None:
        self._spend = spend
        self._settled = dict(spend.settled)
        self._under_way = dict(spend.under_way)
        self._dimensions, self._free = dict(spend.dimensions), spend.free
        self._entrants = spend.entrants

    def add(self, recorded_us: int, event: Event) -> None:
        """Add an event that was recorded at a time, in microseconds."""
        match event:
            case VerdictReceived() | ScoreReceived() | JudgeQueryFailed():
                self._answer(recorded_us, event)
            case JudgeQuerySubmitted() | ScoreQuerySubmitted():
                self._send(recorded_us, event)
            case RequestsSubmitted() | RequestsSettled():
                self._entrants = evolve_requests(self._entrants, event)
            case JudgeRegistered(judge=judge):
                others = self._free - {judge.judge_id}
                self._free = others | {judge.judge_id} if is_free(judge) else others
            case _:
                pass

    def finish(self) -> Spend:
        """Return the frozen spend."""
        return replace(
            self._spend,
            settled=Map(self._settled),
            under_way=Map(self._under_way),
            dimensions=self._dimensions,
            free=self._free,
            entrants=self._entrants,
        )

    def _send(self, recorded_us: int, sent: QuerySubmitted) -> None:
        self._dimensions[sent.query_key] = dimension = _subject(sent)
        if sent.batch_key is None and sent.worst_usd != 0.0:
            key = SpendKey(sent.judge, dimension, _day(recorded_us))
            self._under_way[sent.query_key] = UnderWay(key, sent.worst_usd)

    def _answer(self, recorded_us: int, reply: ReplyRead | JudgeQueryFailed) -> None:
        if self._under_way:
            self._under_way.pop(reply.query_key, None)
        if reply.usage is not None:
            is_failed, is_free = isinstance(reply, JudgeQueryFailed), reply.judge in self._free
            self._add(
                recorded_us,
                reply,
                _bill_of(reply.usage, reply.price, is_failed=is_failed, is_free=is_free),
            )
        elif reply.worst_usd != 0.0 or _is_lost(reply):
            self._add(recorded_us, reply, perhaps(reply.worst_usd))

    def _add(self, recorded_us: int, reply: ReplyRead | JudgeQueryFailed, bill: Bill) -> None:
        dimension = self._dimensions.get(reply.query_key)
        key = SpendKey(reply.judge, dimension, _day(recorded_us))
        self._settled[key] = self._settled.get(key, Bill()) + bill


def _bill_of(usage: Usage, price: Price | None, *, is_failed: bool, is_free: bool) -> Bill:
    """Return the bill of a reply; a free judge's needs no price."""
    n_failed = int(is_failed)
    if price is None:
        n_unpriced = int(not is_free)
        return Bill(n_replies=1, n_failed=n_failed, n_unpriced=n_unpriced, tokens=usage)
    usd = cost_usd(usage, price)
    uncached = Usage(n_input=usage.n_prompt, n_output=usage.n_output)
    return Bill(
        n_replies=1,
        n_failed=n_failed,
        tokens=usage,
        usd=usd,
        failed_usd=usd if is_failed else 0.0,
        uncached_usd=cost_usd(uncached, price) if usage.n_cached else usd,
    )


def _is_lost(reply: ReplyRead | JudgeQueryFailed) -> bool:
    """Say whether there is no reply, although one may have been billed."""
    return isinstance(reply, JudgeQueryFailed) and reply.fate == "perhaps billed"


_US_A_DAY: Final = 86_400_000_000


def _day(recorded_us: int) -> date:
    return _date(recorded_us // _US_A_DAY)


@cache
def _date(n_days: int) -> date:
    return moment(n_days * _US_A_DAY).date()


def _subject(sent: QuerySubmitted) -> Dimension:
    """Return the dimension that a query is about, or the evaluation."""
    if isinstance(sent, ScoreQuerySubmitted):
        return Dimension(sent.evaluation)
    return sent.dimension
