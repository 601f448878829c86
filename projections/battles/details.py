"""One battle: two responses to a prompt, and what a judge said of them in each order."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ledger.events.judging import FailureReason, Order, Verdict
from ledger.events.registration import JudgeSettings, Prompt
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, EntrantId
from projections.tournament.matches import Pairing, PlannedResponse, shown_response
from projections.tournament.settlement import (
    Settlement,
    failure_of,
    recorded_settlement,
    verdict_of,
)
from projections.tournament.state import Tournament
from projections.verdicts.policies import outcome_of_order

OrderStatus: TypeAlias = (
    FailureReason
    | Literal["answered", "in_flight", "pending", "identical", "no_response", "redacted"]
)


class BattleSide(NamedTuple):
    """An entrant of a battle: its response, or why there is none; both None: not generated yet."""

    entrant_id: EntrantId
    response: ResponseGenerated | None
    failure: ResponseFailed | None


class OrderResult(NamedTuple):
    """What became of a battle in one order on one dimension."""

    order: Order
    first: EntrantId  # whose response stood first, in slot A
    status: OrderStatus
    verdict: Verdict | None = None  # on the slots shown
    preferred: EntrantId | None = None  # by the verdict; None also for a tie
    reply: str = ""  # whole; of a query without a verdict, what there was
    detail: str = ""  # what the provider said of a failure


class DimensionResult(NamedTuple):
    """What became of a battle on one dimension."""

    settlement: Settlement
    orders: tuple[OrderResult, ...]  # those that are asked, forward first


class BattleDetails(NamedTuple):
    """Two entrants on a prompt, and the results by a judge on each dimension."""

    prompt: Prompt
    a: BattleSide
    b: BattleSide
    judge: JudgeSettings
    dimensions: tuple[DimensionResult, ...]


def battle_details(
    tournament: Tournament, pairings: Sequence[Pairing], judge: JudgeSettings
) -> BattleDetails:
    """Return everything on record about the pairings of two entrants on one prompt."""
    prompt, a, b = pairings[0].prompt, pairings[0].a, pairings[0].b
    return BattleDetails(
        prompt,
        _side(tournament, a),
        _side(tournament, b),
        judge,
        tuple(_on_dimension(tournament, pairing, judge) for pairing in pairings),
    )


def _side(tournament: Tournament, cell: PlannedResponse) -> BattleSide:
    key = cell.response_key
    response = shown_response(tournament, cell)
    failure = None if response else tournament.response_failures.get(key)
    return BattleSide(cell.entrant.entrant_id, response, failure)


def _on_dimension(
    tournament: Tournament, pairing: Pairing, judge: JudgeSettings
) -> DimensionResult:
    settled = recorded_settlement(tournament, pairing, judge)
    a, b = pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id
    if settled.match is None:
        is_gone = settled.status not in {"pending", "no_response"}
        why: OrderStatus = "redacted" if is_gone else "no_response"
        first: dict[Order, EntrantId] = {"forward": a, "swapped": b}
        unshown = (OrderResult(order, first[order], why) for order in pairing.orders)
        return DimensionResult(settled, tuple(unshown))
    return DimensionResult(
        settled,
        tuple(_in_order(tournament, settled, order, key) for order, key in settled.match.keys),
    )


def _in_order(
    tournament: Tournament, settled: Settlement, order: Order, key: Digest
) -> OrderResult:
    pairing = settled.pairing
    a, b = pairing.a.entrant.entrant_id, pairing.b.entrant.entrant_id
    first = a if order == "forward" else b
    verdict = verdict_of(tournament, key, None)
    if verdict is not None:
        preferred = {"a": a, "b": b}.get(outcome_of_order(verdict, order))
        reply = tournament.verdicts[key].event.reply
        return OrderResult(order, first, "answered", verdict, preferred, reply)
    failure = tournament.query_failures.get(key)
    return OrderResult(
        order,
        first,
        _unanswered(tournament, settled, key),
        reply=failure.reply if failure else "",
        detail=failure.detail if failure else "",
    )


def _unanswered(tournament: Tournament, settled: Settlement, key: Digest) -> OrderStatus:
    """Return why a query has no verdict."""
    if key in tournament.in_flight or key in tournament.under_way:
        return "in_flight"
    is_identical = settled.match is not None and settled.match.is_identical
    if is_identical and settled.outcome == "tie":
        return "identical"
    return failure_of(tournament, key) or "pending"
