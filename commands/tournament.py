"""Decisions: what a command adds to a tournament's history. Pure; repeating one adds nothing.

The other half of the decider, `evolve`, is the projection `projections.tournament`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, assert_never

from msgspec.structs import replace

from commands.command import (
    Command,
    OpenTournament,
    PublishRatings,
    ReceiveReply,
    ReconcilePair,
    RecordResponse,
    SubmitQuery,
)
from commands.ports import GeneratedText, GenerationFailure, Reply
from ledger.errors import TourneyError
from ledger.events.event import Event
from ledger.events.judging import (
    FailureReason,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    Registration,
    RubricRegistered,
)
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, JudgeId
from projections.matches import Cell
from projections.reconcile import POLICIES
from projections.tournament import Tournament
from projections.verdict_line import PARSER, parse_verdict

# However the text ends, a reply that stopped so is no verdict.
_USELESS: Final[Mapping[str, FailureReason]] = MappingProxyType(
    {"refusal": "refused", "max_tokens": "truncated"}
)


class NeverSubmitted(TourneyError):
    """A reply answers a query that this tournament did not submit."""

    def __init__(self, query_key: Digest) -> None:
        super().__init__(f"a reply came for query {query_key}, which was never submitted")
        self.query_key = query_key


def decide(command: Command, state: Tournament) -> tuple[Event, ...]:
    """Return the events that a command adds to what is known; none if they are there already.

    Raises:
        NeverSubmitted: A reply came for a query that was not submitted.
        KeyError: A policy is unknown, or a match is to be reconciled that lacks a verdict.
    """
    match command:
        case OpenTournament():
            return _open(command, state)
        case RecordResponse():
            return _record(command, state)
        case SubmitQuery():
            return _submit(command, state)
        case ReceiveReply():
            return _receive(command, state)
        case ReconcilePair():
            return _reconcile(command, state)
        case PublishRatings(ratings=ratings):
            return () if ratings in state.publications else (ratings,)
        case _:
            assert_never(command)


def _open(command: OpenTournament, state: Tournament) -> tuple[Event, ...]:
    last = state.opening
    opening = replace(command.opening, opening=last.opening if last else 1)
    if last is not None and opening != last:
        opening = replace(opening, opening=last.opening + 1)
    openings = () if opening == last else (opening,)
    return (*openings, *(event for event in command.registrations if not _knows(state, event)))


def _knows(state: Tournament, event: Registration) -> bool:
    match event:
        case PromptRegistered():
            return event.reference in state.prompts
        case RubricRegistered():
            return event.reference in state.rubrics
        case EntrantRegistered():
            return event.reference in state.entrants
        case JudgeRegistered():
            return event.reference in state.judges
        case _:
            assert_never(event)


def _record(command: RecordResponse, state: Tournament) -> tuple[Event, ...]:
    cell, result = command.cell, command.result
    if cell.response_key in state.responses:
        return ()
    match result:
        case GeneratedText():
            return (_generated(cell, result),)
        case GenerationFailure():
            last = state.response_failures.get(cell.response_key)
            is_known = last is not None and last.reason == result.reason
            return () if is_known else (_failed(cell, result),)
        case _:
            assert_never(result)


def _generated(cell: Cell, result: GeneratedText) -> ResponseGenerated:
    return ResponseGenerated(
        response_key=cell.response_key,
        entrant_id=cell.entrant.entrant_id,
        prompt_id=cell.prompt.prompt_id,
        seed=cell.seed,
        sample=0,
        text=result.text,
        finish_reason=result.finish_reason,
        n_prompt_tokens=result.n_prompt_tokens,
        n_generated_tokens=result.n_generated_tokens,
        elapsed_s=result.elapsed_s,
    )


def _failed(cell: Cell, result: GenerationFailure) -> ResponseFailed:
    return ResponseFailed(
        response_key=cell.response_key,
        entrant_id=cell.entrant.entrant_id,
        prompt_id=cell.prompt.prompt_id,
        reason=result.reason,
        detail=result.detail,
    )


def _submit(command: SubmitQuery, state: Tournament) -> tuple[Event, ...]:
    (pairing, response_a, response_b, *_), question, n_failed = command.query
    key, attempt = question.query_key, n_failed + 1
    if key in state.verdicts or state.attempts.get(key, 0) >= attempt:
        return ()
    return (
        JudgeQuerySubmitted(
            query_key=key,
            judge=command.judge,
            dimension=pairing.rubric.dimension,
            prompt_id=pairing.prompt.prompt_id,
            entrant_a=pairing.a.entrant.entrant_id,
            entrant_b=pairing.b.entrant.entrant_id,
            order=question.order,
            rubric_digest=pairing.rubric.digest,
            response_a=response_a.response_key,
            response_b=response_b.response_key,
            attempt=attempt,
        ),
    )


def _receive(command: ReceiveReply, state: Tournament) -> tuple[Event, ...]:
    reply = command.reply
    attempt = state.attempts.get(reply.query_key)
    if attempt is None:
        raise NeverSubmitted(reply.query_key)
    failure = state.query_failures.get(reply.query_key)
    if reply.query_key in state.verdicts or (failure and failure.attempt >= attempt):
        return ()
    return (_read(command.judge, reply, attempt),)


def _read(judge: JudgeId, reply: Reply, attempt: int) -> VerdictReceived | JudgeQueryFailed:
    verdict = parse_verdict(reply.text)
    answered: dict[str, Any] = {
        "query_key": reply.query_key,
        "judge": judge,
        "reply": reply.text,
        "parser": PARSER,
        "stop_reason": reply.stop_reason,
        "model": reply.model,
    }
    if verdict is None or reply.stop_reason in _USELESS:
        return JudgeQueryFailed(**answered, attempt=attempt, reason=_failure_reason(reply))
    return VerdictReceived(**answered, verdict=verdict)


def _failure_reason(reply: Reply) -> FailureReason:
    return _USELESS.get(reply.stop_reason) or ("unreadable" if reply.text.strip() else "empty")


def _reconcile(command: ReconcilePair, state: Tournament) -> tuple[Event, ...]:
    key = command.match.key(command.judge, command.policy)
    if key in state.outcomes:
        return ()
    forward, swapped = state.verdicts[key.forward], state.verdicts[key.swapped]
    outcome = POLICIES[command.policy](forward.event.verdict, swapped.event.verdict)
    return (PairReconciled(outcome=outcome, **key._asdict()),)
