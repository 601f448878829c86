"""Decisions: what a command adds to a tournament's history. Pure; repeating one adds nothing.

The other half of the decider, `evolve`, is the projection `projections.tournament`.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from commands.ports import GeneratedText, GenerationFailure, Reply
from ledger.errors import TourneyError
from ledger.events.judging import (
    FailureReason,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.registry import Event
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, JudgeId
from projections.matches import Cell, Match
from projections.progress import OpenQuery
from projections.reconcile import POLICIES
from projections.tournament import Tournament
from projections.verdict_line import PARSER, parse_verdict

Registration: TypeAlias = PromptRegistered | RubricRegistered | EntrantRegistered | JudgeRegistered


@dataclass(frozen=True)
class OpenTournament:
    """Open under a configuration, or open again if it changed, and register what it names."""

    opening: TournamentOpened  # its number is given by the decision
    registrations: tuple[Registration, ...]


@dataclass(frozen=True)
class RecordResponse:
    """Keep what a generator made for a cell."""

    cell: Cell
    result: GeneratedText | GenerationFailure


@dataclass(frozen=True)
class SubmitQuery:
    """Put an open query to a judge."""

    judge: JudgeId
    query: OpenQuery


@dataclass(frozen=True)
class ReceiveReply:
    """Read a judge's reply."""

    judge: JudgeId
    reply: Reply


@dataclass(frozen=True)
class ReconcilePair:
    """Decide a match from its two verdicts."""

    judge: JudgeId
    policy: str
    match: Match


@dataclass(frozen=True)
class PublishRatings:
    """Claim a run's ratings."""

    ratings: RatingsPublished


Command: TypeAlias = (
    OpenTournament | RecordResponse | SubmitQuery | ReceiveReply | ReconcilePair | PublishRatings
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
    opening = command.opening.model_copy(update={"opening": last.opening if last else 1})
    if last is not None and opening != last:
        opening = opening.model_copy(update={"opening": last.opening + 1})
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
            return (
                ResponseGenerated(
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
                ),
            )
        case GenerationFailure():
            if cell.response_key in state.response_failures:
                return ()
            return (
                ResponseFailed(
                    response_key=cell.response_key,
                    entrant_id=cell.entrant.entrant_id,
                    prompt_id=cell.prompt.prompt_id,
                    reason=result.reason,
                    detail=result.detail,
                ),
            )
        case _:
            assert_never(result)


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
    verdict = parse_verdict(reply.text)
    reason = _failure_reason(reply)
    if verdict is None or reason in {"refused", "truncated"}:
        return (
            JudgeQueryFailed(
                query_key=reply.query_key,
                judge=command.judge,
                attempt=attempt,
                reason=reason,
                reply=reply.text,
                parser=PARSER,
                stop_reason=reply.stop_reason,
                model=reply.model,
            ),
        )
    return (
        VerdictReceived(
            query_key=reply.query_key,
            judge=command.judge,
            verdict=verdict,
            reply=reply.text,
            parser=PARSER,
            stop_reason=reply.stop_reason,
            model=reply.model,
        ),
    )


def _failure_reason(reply: Reply) -> FailureReason:
    match reply.stop_reason:
        case "refusal":
            return "refused"
        case "max_tokens":
            return "truncated"
        case _:
            return "unreadable" if reply.text.strip() else "empty"


def _reconcile(command: ReconcilePair, state: Tournament) -> tuple[Event, ...]:
    key = command.match.key(command.judge, command.policy)
    if key in state.outcomes:
        return ()
    forward, swapped = state.verdicts[key.forward], state.verdicts[key.swapped]
    outcome = POLICIES[command.policy](forward.event.verdict, swapped.event.verdict)
    return (PairReconciled(outcome=outcome, **key._asdict()),)
