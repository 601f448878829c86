"""Decisions on queries: submit them, record answers.

An answer becomes a verdict or a failure here, by the judge's parser.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, assert_never

from msgspec import UNSET
from msgspec.structs import astuple, replace

from commands.decisions.commands import ReceiveAnswer, ReopenQuery, SubmitQuery
from commands.ports import NoReply
from ledger.errors import TourneyError
from ledger.events import judging
from ledger.events.money import Usage
from ledger.events.registry import Event
from ledger.identity import Digest, Dimension, JudgeId
from projections.tournament.remaining import OpenQuery, OpenScore, Unanswered
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSER_OF, PARSERS, section_of
from projections.verdicts.scoring import SCORE_PARSER_OF, SCORE_PARSERS

# A reply that stopped for one of these reasons says nothing, however its text ends.
_NO_VERDICT: Final[Mapping[str, judging.FailureReason]] = {
    "refusal": "refused",
    "max_tokens": "truncated",
}


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
    query: Unanswered,
    state: Tournament,
    *,
    in_batch: Digest | None = None,
    worst_usd: float | None = 0.0,
) -> tuple[Event, ...]:
    """Return the submission of each query in a request, which share what it costs at worst.

    None of one whose attempt was submitted, or that is answered.
    """
    due = [
        each
        for each in query.every
        if not state.is_answered(each.key) and state.attempts.get(each.key, 0) <= each.n_failed
    ]
    return tuple(
        _query_submitted(each, judge, in_batch, _part(worst_usd, len(due))) for each in due
    )


def _query_submitted(
    query: Unanswered, judge: JudgeId, in_batch: Digest | None, worst_usd: float | None
) -> judging.QuerySubmitted:
    sent: dict[str, Any] = {
        "query_key": query.key,
        "judge": judge,
        "attempt": query.n_failed + 1,
        "batch_key": in_batch,
        "worst_usd": worst_usd,
    }
    match query:
        case OpenQuery():
            return _pair_submitted(query, sent)
        case OpenScore():
            return _score_submitted(query, sent)
        case _:
            assert_never(query)


def _part(usd: float | None, n_parts: int) -> float | None:
    """Return an equal part of an amount, if it is known."""
    return None if usd is None else usd / n_parts


def _pair_submitted(query: OpenQuery, sent: Mapping[str, Any]) -> judging.JudgeQuerySubmitted:
    pairing, response_a, response_b, *_ = query.match
    return judging.JudgeQuerySubmitted(
        **sent,
        dimension=pairing.rubric.dimension,
        prompt_id=pairing.prompt.prompt_id,
        entrant_a=pairing.a.entrant.entrant_id,
        entrant_b=pairing.b.entrant.entrant_id,
        order=query.asked.order,
        rubric_digest=pairing.rubric.digest,
        response_a=response_a.response_key,
        response_b=response_b.response_key,
        repeats=query.repeats or UNSET,
        request=query.asked.query_key if query.asked.together else UNSET,
    )


def _score_submitted(query: OpenScore, sent: Mapping[str, Any]) -> judging.ScoreQuerySubmitted:
    question, asked, _ = query
    return judging.ScoreQuerySubmitted(
        **sent,
        evaluation=question.evaluation,
        scoring=question.scoring,
        scale=asked.scale,
        samples=question.samples,
    )


def receive(command: ReceiveAnswer, state: Tournament) -> tuple[Event, ...]:
    """Return what is read in an answer, or its failure; nothing if it is recorded already."""
    request = command.answer.query_key
    together = state.together.get(request)
    if together is None:
        return _news(command, state, request)
    parts = (
        _news(command, state, key, of_dimension=dimension) for dimension, key in together.items()
    )
    return _sharing([*chain.from_iterable(parts)])


_Answered: TypeAlias = judging.ReplyRead | judging.JudgeQueryFailed


def _news(
    command: ReceiveAnswer,
    state: Tournament,
    key: Digest,
    *,
    of_dimension: Dimension | None = None,
) -> tuple[_Answered, ...]:
    """Return what an answer says of a query; nothing if it is recorded already.

    Args:
        command: The answer.
        state: What is recorded.
        key: The query.
        of_dimension: Whose part of the answer is read; None: all of it.
    """
    is_awaited = key in state.under_way
    if state.is_answered(key) and not is_awaited:  # perhaps another's, and never submitted here
        return ()
    if key not in state.attempts:
        raise TourneyError(f"a reply came for query {key}, which was never submitted")
    event = _read(command, state, key, of_dimension)
    # an attempt fails once; what was read is kept even after a failure of its attempt
    is_read = not isinstance(event, judging.JudgeQueryFailed)
    is_news = is_read or state.is_unanswered(key) or is_awaited
    return (event,) if is_news else ()


def _sharing(events: Sequence[_Answered]) -> tuple[_Answered, ...]:
    """Share the tokens of one reply among its verdicts, and what it costs at worst.

    The parts of each count differ by at most one token, and add up to it.
    """
    n = len(events)
    return tuple(
        replace(
            event,
            usage=event.usage and Usage(*((count + i) // n for count in astuple(event.usage))),
            worst_usd=_part(event.worst_usd, n),
        )
        for i, event in enumerate(events)
    )


def reopen(failure: judging.JudgeQueryFailed, state: Tournament) -> tuple[Event, ...]:
    """Return that a query is asked again; nothing if it is open or answered."""
    key = failure.query_key
    if state.is_answered(key) or state.reopened.get(key) == failure.attempt:
        return ()
    return (
        judging.JudgeQueryReopened(
            query_key=key, judge=failure.judge, attempt=failure.attempt, reason=failure.reason
        ),
    )


def _read(
    command: ReceiveAnswer, state: Tournament, key: Digest, dimension: Dimension | None
) -> _Answered:
    """Read an answer as a score, if one was asked for, or else as a verdict on a dimension."""
    answer, protocol = command.answer, command.judge.protocol
    attempt, scale = state.attempts[key], state.scales.get(key)
    parser = PARSER_OF[protocol if dimension is None else "schema"]
    parser = parser if scale is None else SCORE_PARSER_OF[protocol]
    about: dict[str, Any] = {
        "query_key": key,
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
    section = answer.text if dimension is None else section_of(answer.text, dimension)
    said = {
        **about,
        "reply": answer.text if section is None else section,
        "stop_reason": answer.stop_reason,
        "model": answer.model,
        "usage": answer.usage,
        "price": None if answer.usage is None else command.price,
        "worst_usd": command.worst_usd if answer.usage is None else 0.0,
    }
    if answer.stop_reason not in _NO_VERDICT and section is not None:
        if scale is not None:
            if (score := SCORE_PARSERS[parser](section, scale)) is not None:
                return judging.ScoreReceived(**said, score=score)
        elif (verdict := PARSERS[parser](section)) is not None:
            return judging.VerdictReceived(**said, verdict=verdict)
    unread: judging.FailureReason = "unreadable" if answer.text.strip() else "empty"
    reason = _NO_VERDICT.get(answer.stop_reason, unread)
    return judging.JudgeQueryFailed(**said, attempt=attempt, reason=reason)
