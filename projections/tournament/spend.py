"""Spend: the cost of recorded replies by judge, dimension and day, at the prices of their time.

A request that may have been billed, and of which no tokens are known, is counted apart, at its
worst: it has no reply, or the server did not say how many tokens its reply took.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, NamedTuple

from immutables import Map

from ledger.events.judging import JudgeQueryFailed, JudgeQuerySubmitted, VerdictReceived
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import JudgeRegistered, JudgeSettings
from ledger.identity import Digest, Dimension, JudgeId, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection

_FREE: Final = frozenset({"reference", "hf"})  # they run on the user's machine
NO_TOKENS: Final = Usage(n_input=0, n_output=0)


class SpendKey(NamedTuple):
    """A judge, a dimension and a day in UTC."""

    judge: JudgeId
    dimension: Dimension | None  # None: the query was never submitted
    day: date


@dataclass(frozen=True)
class Bill:
    """Tokens and cost of replies; the dollars cover replies of known price."""

    n_replies: int = 0
    n_failed: int = 0  # of the replies: paid for, and no verdict
    n_unpriced: int = 0  # of the replies: nobody knows what they cost
    n_maybe_billed: int = 0  # beside the replies: perhaps paid for, and nobody knows the tokens
    maybe_usd: float = 0.0  # for those, at worst; those of unknown price cost nothing here
    tokens: Usage = NO_TOKENS
    usd: float = 0.0
    failed_usd: float = 0.0  # of the dollars: for replies that held no verdict
    uncached_usd: float = 0.0  # the same tokens, had all input been plain

    def __add__(self, other: "Bill") -> "Bill":
        """Return the sum of both bills."""
        return Bill(
            self.n_replies + other.n_replies,
            self.n_failed + other.n_failed,
            self.n_unpriced + other.n_unpriced,
            self.n_maybe_billed + other.n_maybe_billed,
            self.maybe_usd + other.maybe_usd,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.failed_usd + other.failed_usd,
            self.uncached_usd + other.uncached_usd,
        )

    @property
    def saved_usd(self) -> float:
        """What the provider's cache saved; negative if it cost more."""
        return self.uncached_usd - self.usd

    @property
    def fields(self) -> dict[str, Any]:
        """The bill as data; sums that include a reply of unknown price are None."""
        is_known = not self.n_unpriced
        return {
            "n_replies": self.n_replies,
            "n_failed": self.n_failed,
            "n_unpriced": self.n_unpriced,
            "n_maybe_billed": self.n_maybe_billed,
            "maybe_usd": self.maybe_usd,
            **self.tokens.fields,
            "usd": self.usd if is_known else None,
            "priced_usd": self.usd,
            "failed_usd": self.failed_usd if is_known else None,
            "cache_saved_usd": self.saved_usd if is_known else None,
        }


class UnderWay(NamedTuple):
    """Where a request will be billed that has not ended, and what it may cost."""

    key: SpendKey
    bill: Bill


@dataclass(frozen=True)
class Spend:
    """A tournament's bills by judge, dimension and day."""

    stream: StreamId
    settled: Map[SpendKey, Bill] = Map()  # requests that ended
    under_way: Map[Digest, UnderWay] = Map()  # requests sent alone that have not, by query key
    dimensions: Map[Digest, Dimension] = Map()  # by query key
    free: frozenset[JudgeId] = frozenset()

    @property
    def bills(self) -> Mapping[SpendKey, Bill]:
        """All bills; a request that has not ended may have been billed.

        Its process has died, or waits for the answer.
        """
        bills = dict(self.settled)
        for key, bill in self.under_way.values():
            bills[key] = bills.get(key, Bill()) + bill
        return bills

    @property
    def total(self) -> Bill:
        """The sum of all bills."""
        return sum(self.bills.values(), Bill())


def is_free(judge: JudgeSettings) -> bool:
    """Say whether a judge runs on the user's machine."""
    return judge.provider in _FREE


def spend_of(stream: StreamId) -> Projection[Spend]:
    """Return the projection to a tournament's spend."""
    return Projection(initial=Spend(stream), advance=advance)


def advance(spend: Spend, events: Iterable[Recorded]) -> Spend:
    """Return the spend after more events, in order."""
    bills, dimensions, free = spend.settled.mutate(), spend.dimensions.mutate(), spend.free
    under_way = spend.under_way.mutate()
    for recorded in events:
        if recorded.stream != spend.stream:
            continue
        match recorded.event:
            case JudgeRegistered(judge=judge):
                others = free - {judge.judge_id}
                free = others | {judge.judge_id} if is_free(judge) else others
            case JudgeQuerySubmitted(query_key=query_key, dimension=dimension) as sent:
                dimensions[query_key] = dimension
                if sent.batch_key is None and sent.worst_usd != 0.0:
                    key = SpendKey(sent.judge, dimension, recorded.recorded_at.date())
                    under_way[query_key] = UnderWay(key, _perhaps(sent.worst_usd))
            case VerdictReceived() | JudgeQueryFailed() as reply:
                under_way.pop(reply.query_key, None)
                bill = bill_of(reply, free)
                if bill is not None:
                    day = recorded.recorded_at.date()
                    key = SpendKey(reply.judge, dimensions.get(reply.query_key), day)
                    bills[key] = bills.get(key, Bill()) + bill
            case _:
                pass
    return replace(
        spend,
        settled=bills.finish(),
        under_way=under_way.finish(),
        dimensions=dimensions.finish(),
        free=free,
    )


def bill_of(reply: VerdictReceived | JudgeQueryFailed, free: AbstractSet[JudgeId]) -> Bill | None:
    """Return the bill of one request; None if it has no tokens and was not billed."""
    if reply.usage is not None:
        return _of_reply(reply, reply.usage, free)
    is_lost = isinstance(reply, JudgeQueryFailed) and reply.fate == "perhaps billed"
    return _perhaps(reply.worst_usd) if is_lost or reply.worst_usd != 0.0 else None


def _perhaps(worst_usd: float | None) -> Bill:
    return Bill(n_maybe_billed=1, maybe_usd=worst_usd or 0.0)


def _of_reply(
    reply: VerdictReceived | JudgeQueryFailed, usage: Usage, free: AbstractSet[JudgeId]
) -> Bill:
    """Return the bill of one reply; free judges need no price."""
    is_failed = isinstance(reply, JudgeQueryFailed)
    uncached = Usage(n_input=usage.n_prompt, n_output=usage.n_output)
    usd = 0.0 if reply.price is None else cost_usd(usage, reply.price)
    return Bill(
        n_replies=1,
        n_failed=int(is_failed),
        n_unpriced=int(reply.price is None and reply.judge not in free),
        tokens=usage,
        usd=usd,
        failed_usd=usd if is_failed else 0.0,
        uncached_usd=0.0 if reply.price is None else cost_usd(uncached, reply.price),
    )
