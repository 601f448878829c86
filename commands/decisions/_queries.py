"""Decisions on queries and batches: submit them, record answers, close batches.

An answer becomes a verdict or a failure here, by the judge's parser.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final, assert_never

from commands.decisions.commands import (
    DropBatch,
    EndBatch,
    PlanBatch,
    ReceiveAnswer,
    ReopenQuery,
    SubmitBatch,
    SubmitQuery,
)
from commands.ports import NoReply
from ledger.errors import TourneyError
from ledger.events import judging
from ledger.events.registration import Reference
from ledger.events.registry import Event
from ledger.identity import Digest, JudgeId
from projections.tournament.progress import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSER_OF, PARSERS

# A reply that stopped for one of these reasons is no verdict, however its text ends.
_NO_VERDICT: Final[Mapping[str, judging.FailureReason]] = {
    "refusal": "refused",
    "max_tokens": "truncated",
}


class NeverSubmitted(TourneyError):
    """A reply answers a query that this tournament did not submit."""

    def __init__(self, query_key: Digest) -> None:
        super().__init__(f"a reply came for query {query_key}, which was never submitted")
        self.query_key = query_key


def decide_on_query(
    command: SubmitQuery | ReceiveAnswer | ReopenQuery, state: Tournament
) -> tuple[Event, ...]:
    """Return the events that a command adds to a query."""
    match command:
        case SubmitQuery(judge=judge, query=query, worst_usd=worst_usd):
            return submit(judge, query, state, worst_usd=worst_usd)
        case ReceiveAnswer():
            return receive(command, state)
        case ReopenQuery(failure=failure):
            return reopen(failure, state)


def submit(
    judge: JudgeId,
    query: OpenQuery,
    state: Tournament,
    *,
    in_batch: Digest | None = None,
    worst_usd: float | None = 0.0,
) -> tuple[Event, ...]:
    """Return the submission of a query; none if this attempt was submitted, or it has a verdict."""
    (pairing, response_a, response_b, *_), question, n_failed = query
    key, attempt = question.query_key, n_failed + 1
    if key in state.verdicts or state.attempts.get(key, 0) >= attempt:
        return ()
    return (
        judging.JudgeQuerySubmitted(
            query_key=key,
            judge=judge,
            dimension=pairing.rubric.dimension,
            prompt_id=pairing.prompt.prompt_id,
            entrant_a=pairing.a.entrant.entrant_id,
            entrant_b=pairing.b.entrant.entrant_id,
            order=question.order,
            rubric_digest=pairing.rubric.digest,
            response_a=response_a.response_key,
            response_b=response_b.response_key,
            attempt=attempt,
            batch_key=in_batch,
            worst_usd=worst_usd,
        ),
    )


def receive(command: ReceiveAnswer, state: Tournament) -> tuple[Event, ...]:
    """Return the verdict or the failure of an answer; nothing if it is recorded already."""
    key = command.answer.query_key
    is_awaited = key in state.under_way
    if key in state.verdicts and not is_awaited:  # perhaps another's, and never submitted here
        return ()
    if key not in state.attempts:
        raise NeverSubmitted(key)
    event = _read(command, state.attempts[key])
    # an attempt fails once; a verdict is kept even after a failure of its attempt
    is_news = isinstance(event, judging.VerdictReceived) or is_unanswered(key, state) or is_awaited
    return (event,) if is_news else ()


def reopen(failure: judging.JudgeQueryFailed, state: Tournament) -> tuple[Event, ...]:
    """Return that a query is asked again; nothing if it is open or answered."""
    key = failure.query_key
    if key in state.verdicts or state.reopened.get(key) == failure.attempt:
        return ()
    return (
        judging.JudgeQueryReopened(
            query_key=key, judge=failure.judge, attempt=failure.attempt, reason=failure.reason
        ),
    )


def is_unanswered(key: Digest, state: Tournament) -> bool:
    """Return whether a query was submitted and has neither a verdict nor a failure."""
    failure = state.query_failures.get(key)
    is_answered = failure is not None and failure.attempt >= state.attempts.get(key, 0)
    return key in state.attempts and key not in state.verdicts and not is_answered


def _read(
    command: ReceiveAnswer, attempt: int
) -> judging.VerdictReceived | judging.JudgeQueryFailed:
    answer, parser = command.answer, PARSER_OF[command.judge.protocol]
    about: dict[str, Any] = {
        "query_key": answer.query_key,
        "judge": command.judge.judge_id,
        "parser": parser,
    }
    if isinstance(answer, NoReply):
        about |= {"reply": "", "stop_reason": "", "model": "", "detail": answer.detail}
        return judging.JudgeQueryFailed(
            **about,
            attempt=attempt,
            reason=answer.reason,
            fate=answer.fate,
            worst_usd=command.worst_usd if answer.fate == "perhaps billed" else 0.0,
        )
    said = {
        **about,
        "reply": answer.text,
        "stop_reason": answer.stop_reason,
        "model": answer.model,
        "usage": answer.usage,
        "price": None if answer.usage is None else command.price,
        "worst_usd": command.worst_usd if answer.usage is None else 0.0,
    }
    verdict = PARSERS[parser](answer.text)
    if verdict is None or answer.stop_reason in _NO_VERDICT:
        unread: judging.FailureReason = "unreadable" if answer.text.strip() else "empty"
        reason = _NO_VERDICT.get(answer.stop_reason, unread)
        return judging.JudgeQueryFailed(**said, attempt=attempt, reason=reason)
    return judging.VerdictReceived(**said, verdict=verdict)


def decide_on_batch(
    command: PlanBatch | SubmitBatch | DropBatch | EndBatch, state: Tournament
) -> tuple[Event, ...]:
    """Return the events that a command adds to a batch."""
    match command:
        case PlanBatch():
            return (_planned(command, state),)
        case SubmitBatch():
            return _submit_batch(command, state)
        case DropBatch(batch_key=key, why=why):
            is_open = state.batches[key].is_open
            return (judging.JudgeBatchNotCreated(batch_key=key, why=why),) if is_open else ()
        case EndBatch():
            return _end(command, state)
        case _:
            assert_never(command)


def _planned(command: PlanBatch, state: Tournament) -> judging.JudgeBatchPlanned:
    queries = tuple(query.asked.query_key for query in command.queries)
    number = 1 + len(state.own_batches)
    return judging.JudgeBatchPlanned(
        batch_key=judging.batch_key(state.stream, number, queries),
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
    submitted = judging.JudgeBatchSubmitted(
        batch_key=command.batch_key,
        provider_batch_id=command.state.provider_batch_id,
        created_at=command.state.created_at,
        expires_at=command.state.expires_at,
    )
    judge, key = JudgeId(batch.planned.judge.label), command.batch_key
    asked = (submit(judge, query, state, in_batch=key) for query in command.queries)
    return (submitted, *chain.from_iterable(asked))


def _end(command: EndBatch, state: Tournament) -> tuple[Event, ...]:
    batch = state.batches[command.batch_key]
    if batch.status != "in flight":
        return ()
    judge = state.judges[batch.planned.judge]
    ended = judging.JudgeBatchEnded(
        batch_key=command.batch_key,
        n_succeeded=command.state.n_succeeded,
        n_errored=command.state.n_errored,
        n_canceled=command.state.n_canceled,
        n_expired=command.state.n_expired,
    )
    fate: judging.Fate = "perhaps billed" if command.state.failure is None else "refused"
    silent = (
        NoReply(key, "expired", "the provider keeps no result of it", fate)
        for key in batch.planned.queries
        if is_unanswered(key, state)
    )
    worst_usd = batch.worst_usd_each
    lost = (receive(ReceiveAnswer(judge, each, worst_usd=worst_usd), state) for each in silent)
    return (*chain.from_iterable(lost), ended)
