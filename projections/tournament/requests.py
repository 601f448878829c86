"""Requests sent: what they cost, those to endpoint entrants that have not ended, and batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import fsum
from operator import add
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from immutables import Map

from ledger.events import judging
from ledger.events.judging import Fate
from ledger.events.money import Usage
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import Digest, EntrantId, StreamId
from ledger.recorded import Recorded
from projections.results.money import EntrantSpendRow

BATCH_EVENTS: Final = frozenset(
    {"JudgeBatchPlanned", "JudgeBatchSubmitted", "JudgeBatchNotCreated", "JudgeBatchEnded"}
)
RESULTS_KEPT: Final = timedelta(days=29)  # from creation: Anthropic, message batches, 2026
Status: TypeAlias = Literal["unknown", "in flight", "not created", "ended"]


class Batch(NamedTuple):
    """One batch and its events so far."""

    recorded: Recorded  # the plan, with its place and time
    planned: judging.JudgeBatchPlanned
    submitted: judging.JudgeBatchSubmitted | None = None
    end: judging.JudgeBatchEnded | judging.JudgeBatchNotCreated | None = None

    @property
    def stream(self) -> StreamId:
        """The tournament that planned it."""
        return self.recorded.stream

    @property
    def status(self) -> Status:
        """Its status; `unknown` if it may or may not exist at the provider."""
        match self.end:
            case judging.JudgeBatchEnded():
                return "ended"
            case judging.JudgeBatchNotCreated():
                return "not created"
        return "unknown" if self.submitted is None else "in flight"

    @property
    def worst_usd_each(self) -> float | None:
        """What one request may have cost, if nothing is known of its result."""
        worst_usd = self.planned.worst_usd
        return None if worst_usd is None else worst_usd / max(1, len(self.planned.queries))

    @property
    def is_open(self) -> bool:
        """Whether it may still cost money."""
        return self.end is None

    @property
    def results_kept_until(self) -> datetime | None:
        """When the provider deletes its results."""
        return None if self.submitted is None else self.submitted.created_at + RESULTS_KEPT


def evolve_batch(batch: Batch | None, recorded: Recorded) -> Batch | None:
    """Return a batch after one more of its events; None if its plan is not in the ledger."""
    match recorded.event:
        case judging.JudgeBatchPlanned() as planned if batch is None:
            return Batch(recorded, planned)
        case judging.JudgeBatchSubmitted() as submitted if batch is not None:
            return batch._replace(submitted=submitted)
        case judging.JudgeBatchNotCreated() | judging.JudgeBatchEnded() as end if batch is not None:
            return batch._replace(end=end)
        case _:
            return batch


def open_batches(events: Iterable[Recorded]) -> tuple[Batch, ...]:
    """Return the open batches of every tournament, in the order of their plans."""
    batches: dict[Digest, Batch] = {}
    for recorded in events:
        if isinstance(recorded.event, judging.BatchFact):
            key = recorded.event.batch_key
            batch = evolve_batch(batches.get(key), recorded)
            if batch is not None:
                batches[key] = batch
    return tuple(batch for batch in batches.values() if batch.is_open)


NO_TOKENS: Final = Usage(n_input=0, n_output=0)


@dataclass(frozen=True)
class Bill:
    """Tokens and cost of replies; the dollars cover replies of known price."""

    n_replies: int = 0
    n_failed: int = 0  # of the replies: paid for, and no verdict
    n_unpriced: int = 0  # of the replies: nobody knows what they cost
    n_maybe_billed: int = 0  # beside the replies: perhaps paid for, and nobody knows the tokens
    maybe_usd: float = 0.0  # for those, at worst; those of unknown price cost nothing here
    n_maybe_unpriced: int = 0  # of those: nobody knows what they cost
    tokens: Usage = NO_TOKENS
    usd: float = 0.0
    failed_usd: float = 0.0  # of the dollars: for replies that held no verdict
    uncached_usd: float = 0.0  # the same tokens, had all input been plain

    def __add__(self, other: "Bill") -> "Bill":
        """Return the sum of both bills."""
        return Bill(*map(add, vars(self).values(), vars(other).values()))

    @property
    def saved_usd(self) -> float:
        """What the provider's cache saved; negative if it cost more."""
        return self.uncached_usd - self.usd

    @property
    def most_usd(self) -> float | None:
        """What may have been paid beside the replies, at worst; None: some of it is unknown."""
        return None if self.n_maybe_unpriced else self.maybe_usd

    @property
    def known_usd(self) -> float | None:
        """What the replies cost; None: of some, or of all that may be billed, it is unknown."""
        is_unknown = self.n_unpriced or (not self.n_replies and self.n_maybe_unpriced)
        return None if is_unknown else self.usd

    @property
    def fields(self) -> dict[str, Any]:
        """The bill as data; sums that include a reply or request of unknown price are None."""
        is_known = self.known_usd is not None
        return {
            "n_replies": self.n_replies,
            "n_failed": self.n_failed,
            "n_unpriced": self.n_unpriced,
            "n_maybe_billed": self.n_maybe_billed,
            "maybe_usd": self.most_usd,
            **self.tokens.fields,
            "usd": self.known_usd,
            "priced_usd": self.usd,
            "failed_usd": self.failed_usd if is_known else None,
            "cache_saved_usd": self.saved_usd if is_known else None,
        }


def perhaps(worst_usd: float | None) -> Bill:
    """Return the bill of a request that may have been billed; None: the price is unknown."""
    return Bill(
        n_maybe_billed=1, maybe_usd=worst_usd or 0.0, n_maybe_unpriced=int(worst_usd is None)
    )


class EntrantKey(NamedTuple):
    """An entrant, and the model that answered in its name."""

    entrant: EntrantId
    model: str  # the server's name for it


class RequestKey(NamedTuple):
    """A request to an entrant."""

    entrant: EntrantId
    request: Digest


class Awaited(NamedTuple):
    """A request that was sent and has not ended."""

    model: str
    worst_usd: float | None  # None: nobody knows the price


@dataclass(frozen=True)
class EntrantRequests:
    """The requests of one tournament to its endpoint entrants, for responses and evaluations."""

    n_submitted: int = 0  # events
    n_settled: int = 0
    settled: Map[EntrantKey, Bill] = Map()
    price_tables: Map[EntrantKey, str] = Map()  # the newest that a price was from
    under_way: Map[RequestKey, Awaited] = Map()
    fates: Map[RequestKey, Fate] = Map()  # of those that ended, since they were sent last

    @property
    def bills(self) -> Mapping[EntrantKey, Bill]:
        """All bills; a request that has not ended may have been billed."""
        bills = dict(self.settled)
        for sent, (model, worst_usd) in self.under_way.items():
            key = EntrantKey(sent.entrant, model)
            bills[key] = bills.get(key, Bill()) + perhaps(worst_usd)
        return bills

    @property
    def usd(self) -> float:
        """Dollars spent on answers of known price."""
        return fsum(bill.usd for bill in self.settled.values())

    @property
    def at_risk_usd(self) -> float:
        """What requests without an answer cost at worst; those of unknown price count as nothing.

        They are under way, or were perhaps billed.
        """
        lost = (bill.maybe_usd for bill in self.settled.values())
        awaited = (request.worst_usd or 0.0 for request in self.under_way.values())
        return fsum((*lost, *awaited))


NO_REQUESTS: Final = EntrantRequests()


def endpoint_spend(requests: EntrantRequests) -> tuple[EntrantSpendRow, ...]:
    """Return what each entrant took from each model, at the prices of their time."""
    return tuple(
        EntrantSpendRow(
            entrant=key.entrant,
            model=key.model,
            n_answers=bill.n_replies,
            n_input=bill.tokens.n_input,
            n_output=bill.tokens.n_output,
            usd=bill.known_usd,
            price_table=requests.price_tables.get(key),
            n_maybe_billed=bill.n_maybe_billed,
            maybe_usd=bill.most_usd,
        )
        for key, bill in sorted(requests.bills.items())
    )


def evolve_requests(
    requests: EntrantRequests, step: RequestsSubmitted | RequestsSettled
) -> EntrantRequests:
    """Return the requests after one more event."""
    if isinstance(step, RequestsSubmitted):
        return _submit(requests, step)
    return _settle(requests, step)


def _submit(requests: EntrantRequests, step: RequestsSubmitted) -> EntrantRequests:
    under_way, fates = requests.under_way.mutate(), requests.fates.mutate()
    for request, worst_usd in zip(step.requests, step.worst_usd, strict=False):
        sent = RequestKey(step.entrant, request)
        under_way[sent] = Awaited(step.model, worst_usd)
        fates.pop(sent, None)
    return replace(
        requests,
        n_submitted=requests.n_submitted + 1,
        under_way=under_way.finish(),
        fates=fates.finish(),
    )


def _settle(requests: EntrantRequests, step: RequestsSettled) -> EntrantRequests:
    """Bill what ended; two ledgers that received one batch may say so twice once they are one."""
    key, under_way = EntrantKey(step.entrant, step.model), requests.under_way.mutate()
    fates, billed = requests.fates.mutate(), list[Charge]()
    for charge in step.charges:
        sent = RequestKey(step.entrant, charge.request)
        under_way.pop(sent, None)
        if fates.get(sent) != "answered":
            billed.append(charge)
            fates[sent] = charge.fate
    settled, tables = requests.settled, requests.price_tables
    if (bill := _bill_of(billed)) != Bill():
        settled = settled.set(key, settled.get(key, Bill()) + bill)
    if step.price_table is not None:
        tables = tables.set(key, step.price_table)
    return EntrantRequests(
        n_submitted=requests.n_submitted,
        n_settled=requests.n_settled + 1,
        settled=settled,
        price_tables=tables,
        under_way=under_way.finish(),
        fates=fates.finish(),
    )


def _bill_of(charges: Sequence[Charge]) -> Bill:
    """Add up charges; a request that was refused or not sent is on no bill."""
    answered = [charge for charge in charges if charge.fate == "answered"]
    lost = (perhaps(charge.usd) for charge in charges if charge.fate == "perhaps billed")
    usd = fsum(charge.usd or 0.0 for charge in answered)
    bill = Bill(
        n_replies=len(answered),
        n_unpriced=sum(charge.usd is None for charge in answered),
        tokens=sum((charge.usage for charge in answered if charge.usage is not None), NO_TOKENS),
        usd=usd,
        uncached_usd=usd,
    )
    return sum(lost, bill)
