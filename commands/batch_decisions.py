"""Decisions on a batch of queries: plan it, submit it, end it, or give it up."""

from typing import assert_never

from commands.command import DropBatch, EndBatch, PlanBatch, ReceiveAnswer, SubmitBatch
from commands.ports import NoReply
from commands.query_decisions import awaits, receive, submit
from ledger.events.judging import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
    batch_key,
)
from ledger.events.registration import Reference
from ledger.events.registry import Event
from ledger.identity import JudgeId
from projections.tournament.state import Tournament


def decide_on_batch(
    command: PlanBatch | SubmitBatch | DropBatch | EndBatch, state: Tournament
) -> tuple[Event, ...]:
    """Return the events that a command adds to a batch's history."""
    match command:
        case PlanBatch():
            return (_planned(command, state),)
        case SubmitBatch():
            return _submit_batch(command, state)
        case DropBatch(batch_key=key, why=why):
            is_open = state.batches[key].is_open
            return (JudgeBatchNotCreated(batch_key=key, why=why),) if is_open else ()
        case EndBatch():
            return _end(command, state)
        case _:
            assert_never(command)


def _planned(command: PlanBatch, state: Tournament) -> JudgeBatchPlanned:
    queries = tuple(query.asked.query_key for query in command.queries)
    number = 1 + len(state.own_batches)
    return JudgeBatchPlanned(
        batch_key=batch_key(state.stream, number, queries),
        number=number,
        judge=Reference(label=command.judge.judge_id, digest=command.judge.content_digest),
        queries=queries,
        expected_usd=command.expected_usd,
        worst_usd=command.worst_usd,
        cap_usd=command.cap_usd,
        planned_at=command.planned_at,
    )


def _submit_batch(command: SubmitBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if batch.status != "unknown":
        return ()
    submitted = JudgeBatchSubmitted(
        batch_key=command.batch_key,
        provider_batch_id=command.state.provider_batch_id,
        created_at=command.state.created_at,
        expires_at=command.state.expires_at,
    )
    asked = (
        event
        for query in command.queries
        for event in submit(
            JudgeId(batch.planned.judge.label), query, state, in_batch=command.batch_key
        )
    )
    return (submitted, *asked)


def _end(command: EndBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if batch.status != "in flight":
        return ()
    judge = state.judges[batch.planned.judge]
    silent = (
        NoReply(key, "expired", "the provider keeps no result of it")
        for key in batch.planned.queries
        if awaits(key, state)
    )
    ended = JudgeBatchEnded(
        batch_key=command.batch_key,
        n_succeeded=command.state.n_succeeded,
        n_errored=command.state.n_errored,
        n_canceled=command.state.n_canceled,
        n_expired=command.state.n_expired,
    )
    lost = tuple(event for each in silent for event in receive(ReceiveAnswer(judge, each), state))
    return (*lost, ended)
