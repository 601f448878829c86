"""The cap on spending, kept against the worst case.

`affordable_queries` are those that the cap allows; `Exposure` bounds the charges that are not
settled.
"""

from collections.abc import Callable, Mapping, Sequence
from math import fsum

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.spending.consent import dollars
from commands.spending.pricing import Pricing
from ledger.events.judging import JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, JudgeId
from projections.tournament.matches import queries_to
from projections.tournament.progress import OpenQuery
from projections.tournament.spend import may_have_been_billed


class BudgetReached(Refused):
    """The next query might cost more than is left."""

    def __init__(self, cap_usd: float, bound_usd: float, next_usd: float) -> None:
        super().__init__(
            f"the cap is {dollars(cap_usd)}: ${bound_usd:.4f} is spent, in flight or perhaps"
            f" billed, and the next query may cost ${next_usd:.4f}; raise --max-usd or [judge]"
            " max_usd to go on"
        )
        self.cap_usd, self.bound_usd = cap_usd, bound_usd


class PriceUnknown(Refused):
    """The cap cannot be kept: the judge has no price."""

    def __init__(self) -> None:
        super().__init__(
            "a cap is set, and this judge has no price; add one with [judge] prices = FILE"
        )


def affordable_queries(
    queries: Sequence[OpenQuery], pricing: Pricing, *, cap_usd: float, bound_usd: float
) -> Sequence[OpenQuery]:
    """Return as many of the first queries as cannot cost more than is left of the cap.

    Args:
        queries: The queries to send, in order.
        pricing: The prices of the judge that is asked.
        cap_usd: The cap in dollars.
        bound_usd: Dollars spent, in flight or perhaps billed, at worst.

    Raises:
        BudgetReached: Not even the first is affordable.
        PriceUnknown: The judge has no price.
    """
    left = cap_usd - bound_usd
    for n_affordable, query in enumerate(queries):
        next_usd = pricing.worst_usd([query.asked])
        if next_usd is None:
            raise PriceUnknown
        if next_usd > left:
            if not n_affordable:
                raise BudgetReached(cap_usd, bound_usd, next_usd)
            return queries[:n_affordable]
        left -= next_usd
    return queries


class Exposure:
    """Upper bound on unsettled charges: batches in flight, and failures that may have been billed.

    If a run is killed while it waits for a direct judge, its open queries are recorded as submitted
    but not counted: they cannot be told from queries that were never sent.
    """

    def __init__(self, recorder: Recorder, pricing_of: Callable[[JudgeSettings], Pricing]) -> None:
        self._recorder, self._pricing_of = recorder, pricing_of
        self._position = 0  # failures are counted up to here
        self._lost_usd = 0.0
        self._worst_of: dict[JudgeId, Mapping[Digest, float]] = {}
        self._dearest: dict[JudgeId, float] = {}

    def usd(self) -> float:
        """Return the bound in dollars: all judges, whichever process asked them.

        A query that is no longer asked, of an older rubric for example, counts as the dearest of
        today's.

        Raises:
            Refused: A batch without a known price is in flight.
        """
        in_flight = [batch.planned.worst_usd for batch in self._recorder.state.open_batches]
        if None in in_flight:
            raise Refused(
                "a batch without a known price is in flight: a cap cannot be kept until it ends"
            )
        self._lost_usd += fsum(self._lost_since())
        return self._lost_usd + fsum(usd or 0.0 for usd in in_flight)

    def _lost_since(self) -> list[float]:
        """Return the worst case of each such failure that was recorded since the last call."""
        ledger, since = self._recorder.ledger, self._position
        self._position = ledger.head.position
        news = ledger.read(
            after=since,
            until=self._position,
            stream=self._recorder.state.stream,
            types=["JudgeQueryFailed"],
        )
        return [
            self._worst(each.event)
            for each in news
            if isinstance(each.event, JudgeQueryFailed) and may_have_been_billed(each.event.detail)
        ]

    def _worst(self, failure: JudgeQueryFailed) -> float:
        if failure.judge not in self._worst_of:
            self._worst_of[failure.judge] = self._priced(failure.judge)
            self._dearest[failure.judge] = max(self._worst_of[failure.judge].values(), default=0.0)
        return self._worst_of[failure.judge].get(failure.query_key, self._dearest[failure.judge])

    def _priced(self, judge_id: JudgeId) -> Mapping[Digest, float]:
        """Return the worst case of each query to the judges of a name, without their texts.

        The same query may have been sent in a batch or not, at different prices.
        """
        state, worst_usd = self._recorder.state, dict[Digest, float]()
        for judge in (each for each in state.judges.values() if each.judge_id == judge_id):
            pricing = self._pricing_of(judge)
            for question in queries_to(state, [prompt.prompt_id for prompt in state.bank], judge):
                usd, key = pricing.worst_usd([question]) or 0.0, question.query_key
                worst_usd[key] = max(usd, worst_usd.get(key, 0.0))
        return worst_usd
