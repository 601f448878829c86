"""Spend: what judges and endpoint entrants cost, at the prices of their time.

Judges' replies are added up by judge, dimension and day, and requests to entrants by entrant. A
reply on several dimensions is on the bill of each, with its part of the cost; in all it is one.

A request that may have been billed, and of which no tokens are known, is counted apart, at its
worst: it has no reply, or the server did not say how many tokens its reply took.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
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
    request: Digest  # that has this query


class CountedReply(NamedTuple):
    """A request whose reply was counted last, as far as its dimensions are known."""

    request: Digest | None = None
    queries: frozenset[Digest] = frozenset()
    has_failed: bool = False  # on one of them


_NONE: Final = CountedReply()


@dataclass(frozen=True)
class Spend:
    """A tournament's bills by judge, dimension and day, and those of its endpoint entrants."""

    stream: StreamId
    settled: Map[SpendKey, Bill] = Map()  # requests that ended
    settled_by_day: Map[SpendKey, Bill] = Map()  # likewise, each once: on no dimension
    under_way: Map[Digest, UnderWay] = Map()  # requests sent alone that have not, by query key
    dimensions: Mapping[Digest, Dimension] = Map()  # by query key: a dict, since they are many
    requests: Mapping[Digest, Digest] = Map()  # by the key of a query that was asked with others
    newest: CountedReply = _NONE
    free: frozenset[JudgeId] = frozenset()
    entrants: EntrantRequests = NO_REQUESTS

    @property
    def bills(self) -> Mapping[SpendKey, Bill]:
        """All bills of judges, in order; a request that has not ended may have been billed.

        Its process has died, or waits for the answer.
        """
        bills = dict(self.settled)
        for key, worst_usd, _ in self.under_way.values():
            bills[key] = bills.get(key, Bill()) + perhaps(worst_usd)
        return _in_order(bills)

    @property
    def by_day(self) -> Mapping[SpendKey, Bill]:
        """The same by judge and day alone: a reply on several dimensions counts once."""
        bills, counted = dict(self.settled_by_day), set[Digest]()
        for key, worst_usd, request in self.under_way.values():
            place, bill = key._replace(dimension=None), perhaps(worst_usd)
            part = _uncounted(bill) if request in counted else bill
            bills[place] = bills.get(place, Bill()) + part
            counted.add(request)
        return _in_order(bills)

    @property
    def total(self) -> Bill:
        """The sum of judges' bills; each reply counts once."""
        return sum(self.by_day.values(), Bill())


def _in_order(bills: Mapping[SpendKey, Bill]) -> Mapping[SpendKey, Bill]:
    keys = sorted(bills, key=lambda key: (key.judge, key.dimension or "", key.day))
    return {key: bills[key] for key in keys}


def _uncounted(bill: Bill) -> Bill:
    """Return a further part of a reply: its tokens and dollars, and no reply more."""
    return replace(
        bill, n_replies=0, n_failed=0, n_unpriced=0, n_maybe_billed=0, n_maybe_unpriced=0
    )


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
        self._settled, self._by_day = dict(spend.settled), dict(spend.settled_by_day)
        self._under_way = dict(spend.under_way)
        self._requests, self._newest = dict(spend.requests), spend.newest
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
            settled_by_day=Map(self._by_day),
            under_way=Map(self._under_way),
            requests=self._requests,
            newest=self._newest,
            dimensions=self._dimensions,
            free=self._free,
            entrants=self._entrants,
        )

    def _send(self, recorded_us: int, sent: QuerySubmitted) -> None:
        request = sent.query_key
        if isinstance(sent, ScoreQuerySubmitted):
            dimension = Dimension(sent.evaluation)
        else:
            dimension = sent.dimension
            if sent.request:
                request = self._requests[sent.query_key] = sent.request
            if request == self._newest.request:  # what comes now is another reply
                self._newest = _NONE
        self._dimensions[sent.query_key] = dimension
        if sent.batch_key is None and sent.worst_usd != 0.0:
            key = SpendKey(sent.judge, dimension, moment(recorded_us).date())
            self._under_way[sent.query_key] = UnderWay(key, sent.worst_usd, request)

    def _answer(self, recorded_us: int, reply: ReplyRead | JudgeQueryFailed) -> None:
        if self._under_way:
            self._under_way.pop(reply.query_key, None)
        self._begin(reply)
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
        key = SpendKey(reply.judge, dimension, moment(recorded_us).date())
        self._settled[key] = self._settled.get(key, Bill()) + bill
        day = key._replace(dimension=None)
        self._by_day[day] = self._by_day.get(day, Bill()) + self._part(bill)

    def _begin(self, reply: ReplyRead | JudgeQueryFailed) -> None:
        """Begin to count a reply, unless this is a further part of the newest one."""
        request, newest = self._requests.get(reply.query_key), self._newest
        if request is None or request != newest.request or reply.query_key in newest.queries:
            newest = CountedReply(request)
        self._newest = newest._replace(queries=newest.queries | {reply.query_key})

    def _part(self, bill: Bill) -> Bill:
        """Return what a part adds to the bill of its reply, which fails once at most."""
        newest = self._newest
        self._newest = newest._replace(has_failed=newest.has_failed or bill.n_failed > 0)
        if len(newest.queries) == 1:
            return bill
        return replace(_uncounted(bill), n_failed=0 if newest.has_failed else bill.n_failed)


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
