"""Decisions on batches of judge queries, and of requests to entrants: plan, submit, close them.

Requests to an entrant are recorded as submitted together with the plan, at what each costs at
worst, and as settled if the batch is dropped or ends without their results.
"""

from collections.abc import Iterable
from itertools import chain
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from commands.decisions._queries import receive, submit
from commands.decisions.commands import (
    DropBatch,
    EndBatch,
    PlanBatch,
    ReceiveAnswer,
    ReopenBatch,
    SettleRequests,
    SubmitBatch,
    SubmitRequests,
)
from commands.ports import BatchState, NoReply
from ledger.events import judging
from ledger.events.registry import Event
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import Digest, JudgeId
from projections.tournament.remaining import Unanswered
from projections.tournament.requests import Batch, RequestKey
from projections.tournament.state import Tournament


def decide_on_batch(
    command: PlanBatch | SubmitBatch | DropBatch | EndBatch | ReopenBatch, state: Tournament
) -> tuple[Event, ...]:
    """Return the events that a command adds to a batch."""
    match command:
        case PlanBatch():
            return (_planned(command, state),)
        case SubmitBatch():
            return _submit(command, state)
        case DropBatch():
            return _drop(command, state)
        case EndBatch():
            return _end(command, state)
        case ReopenBatch():
            return _reopen(command, state)
        case _:
            assert_never(command)


def _planned(command: PlanBatch, state: Tournament) -> judging.JudgeBatchPlanned:
    number = 1 + len(state.own_batches)
    return judging.JudgeBatchPlanned(
        batch_key=judging.batch_key(state.stream, number, command.requests),
        number=number,
        judge=command.whom,
        queries=command.requests,
        expected_usd=command.expected_usd,
        worst_usd=command.worst_usd,
        cap_usd=command.cap_usd,
        planned_at=command.planned_at,
    )


def _submit(command: SubmitBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if batch.status != "unknown":
        return ()
    return _submitted(batch.planned, command.state, command.queries, state)


def _submitted(
    planned: judging.JudgeBatchPlanned,
    found: BatchState,
    queries: Iterable[Unanswered],
    state: Tournament,
) -> tuple[Event, ...]:
    submitted = judging.JudgeBatchSubmitted(
        batch_key=planned.batch_key,
        provider_batch_id=found.provider_batch_id,
        created_at=found.created_at,
        expires_at=found.expires_at,
    )
    judge, key = JudgeId(planned.judge.label), planned.batch_key
    asked = (submit(judge, query, state, in_batch=key) for query in queries)
    return (submitted, *chain.from_iterable(asked))


def _drop(command: DropBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if not batch.is_open:
        return ()
    never = judging.JudgeBatchNotCreated(batch_key=command.batch_key, why=command.why)
    return (*_settled(batch, "not sent", command.why, state), never)


def _reopen(command: ReopenBatch, state: Tournament) -> tuple[Event, ...]:
    """Return a plan and a submission of what the provider has already, under a new number.

    What it may have cost is counted since it was given up. It holds only what was lost: the other
    requests are answered, or in another batch by now.
    """
    batch = state.batches[command.batch_key]
    if batch.is_open:
        return ()
    number = 1 + len(state.own_batches)
    lost = tuple(
        query if isinstance(query, str) else query.asked.query_key for query in command.lost
    )
    planned = replace(
        batch.planned,
        batch_key=judging.batch_key(state.stream, number, lost),
        number=number,
        queries=lost,
        expected_usd=0.0,
        worst_usd=0.0,
    )
    queries = (query for query in command.lost if not isinstance(query, str))
    submitted = _submitted(planned, command.state, queries, state)
    return (planned, *_awaited_again(batch, lost, state), *submitted)


def _awaited_again(
    batch: Batch, requests: tuple[Digest, ...], state: Tournament
) -> tuple[Event, ...]:
    """Return that requests to an entrant have no end again; nothing of queries to a judge."""
    entrant = state.entrants.get(batch.planned.judge)
    if entrant is None:
        return ()
    again = SubmitRequests(entrant.entrant_id, entrant.weights, dict.fromkeys(requests, 0.0))
    return (decide_on_requests(again, state),)


_SILENT = "the provider keeps no result of it"


def _end(command: EndBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if batch.status != "in flight":
        return ()
    ended = judging.JudgeBatchEnded(
        batch_key=command.batch_key,
        n_succeeded=command.state.n_succeeded,
        n_errored=command.state.n_errored,
        n_canceled=command.state.n_canceled,
        n_expired=command.state.n_expired,
    )
    fate: judging.Fate = "perhaps billed" if command.state.failure is None else "refused"
    if state.is_to_entrant(batch):
        return (*_settled(batch, fate, _SILENT, state), ended)
    judge, worst_usd = state.judges[batch.planned.judge], batch.worst_usd_each
    silent = (NoReply(key, "expired", _SILENT, fate) for key in _awaited(batch, state))
    lost = (receive(ReceiveAnswer(judge, reply, worst_usd=worst_usd), state) for reply in silent)
    return (*chain.from_iterable(lost), ended)


def _awaited(batch: Batch, state: Tournament) -> list[Digest]:
    return [key for key in batch.planned.queries if state.is_awaited(batch, key)]


def _settled(batch: Batch, fate: judging.Fate, why: str, state: Tournament) -> tuple[Event, ...]:
    """Return that the requests to an entrant without an end have one; nothing of a judge's."""
    entrant = state.entrants.get(batch.planned.judge)
    requests = _awaited(batch, state)
    if entrant is None or not requests:
        return ()
    sent = (
        state.requests.under_way[RequestKey(entrant.entrant_id, request)] for request in requests
    )
    charges = (
        Charge(
            request=request,
            fate=fate,
            usd=awaited.worst_usd if fate == "perhaps billed" else 0.0,
            detail=why,
        )
        for request, awaited in zip(requests, sent, strict=True)
    )
    ended = SettleRequests(entrant.entrant_id, entrant.weights, tuple(charges))
    return (decide_on_requests(ended, state),)


def decide_on_requests(command: SubmitRequests | SettleRequests, state: Tournament) -> Event:
    """Return the event that tells of requests to an entrant, in batches or one by one."""
    if isinstance(command, SubmitRequests):
        return RequestsSubmitted(
            number=state.requests.n_submitted + 1,
            entrant=command.entrant,
            model=command.model,
            requests=tuple(command.worst_usd),
            worst_usd=tuple(command.worst_usd.values()),
            server=command.server or UNSET,
        )
    return RequestsSettled(
        number=state.requests.n_settled + 1,
        entrant=command.entrant,
        model=command.model,
        charges=command.charges,
        price_table=command.price_table,
    )
