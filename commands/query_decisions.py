"""Decisions on one query: submit it, and make of its answer a verdict or a failure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, assert_never

from commands.command import ReceiveAnswer
from commands.ports import NoReply, Reply
from ledger.errors import TourneyError
from ledger.events.judging import (
    FailureReason,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    VerdictReceived,
)
from ledger.events.registry import Event
from ledger.identity import Digest, JudgeId
from projections.tournament.progress import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSER_OF, PARSERS

# However the text ends, a reply that stopped so is no verdict.
_USELESS: Final[Mapping[str, FailureReason]] = MappingProxyType(
    {"refusal": "refused", "max_tokens": "truncated"}
)


class NeverSubmitted(TourneyError):
    """A reply answers a query that this tournament did not submit."""

    def __init__(self, query_key: Digest) -> None:
        super().__init__(f"a reply came for query {query_key}, which was never submitted")
        self.query_key = query_key


def submit(
    judge: JudgeId, query: OpenQuery, state: Tournament, *, in_batch: Digest | None = None
) -> tuple[Event, ...]:
    """Return the submission of a query, be it in a batch; none where it is asked or answered."""
    (pairing, response_a, response_b, *_), question, n_failed = query
    key, attempt = question.query_key, n_failed + 1
    if key in state.verdicts or state.attempts.get(key, 0) >= attempt:
        return ()
    return (
        JudgeQuerySubmitted(
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
        ),
    )


def receive(command: ReceiveAnswer, state: Tournament) -> tuple[Event, ...]:
    """Return what an answer says; nothing where it is known already.

    Raises:
        NeverSubmitted: The query was not submitted.
    """
    key = command.answer.query_key
    if key in state.verdicts:  # be it another tournament's, which is why it was not submitted
        return ()
    if key not in state.attempts:
        raise NeverSubmitted(key)
    event = _read(command, state.attempts[key])
    # an attempt fails once, but a verdict is worth having whatever was recorded before it came
    return (event,) if isinstance(event, VerdictReceived) or awaits(key, state) else ()


def awaits(key: Digest, state: Tournament) -> bool:
    """Say whether a query was submitted and is not answered."""
    failure = state.query_failures.get(key)
    is_answered = failure is not None and failure.attempt >= state.attempts.get(key, 0)
    return key in state.attempts and key not in state.verdicts and not is_answered


def _read(command: ReceiveAnswer, attempt: int) -> VerdictReceived | JudgeQueryFailed:
    answer, parser = command.answer, PARSER_OF[command.judge.protocol]
    about: dict[str, Any] = {
        "query_key": answer.query_key,
        "judge": command.judge.judge_id,
        "parser": parser,
    }
    match answer:
        case NoReply(reason=reason, detail=detail):
            silence: dict[str, Any] = {"reply": "", "stop_reason": "", "model": ""}
            return JudgeQueryFailed(
                **about, **silence, attempt=attempt, reason=reason, detail=detail
            )
        case Reply():
            said = {
                **about,
                "reply": answer.text,
                "stop_reason": answer.stop_reason,
                "model": answer.model,
                "usage": answer.usage,
                "price": None if answer.usage is None else command.price,
            }
            verdict = PARSERS[parser](answer.text)
            if verdict is None or answer.stop_reason in _USELESS:
                return JudgeQueryFailed(**said, attempt=attempt, reason=_failure_reason(answer))
            return VerdictReceived(**said, verdict=verdict)
        case _:
            assert_never(answer)


def _failure_reason(reply: Reply) -> FailureReason:
    return _USELESS.get(reply.stop_reason) or ("unreadable" if reply.text.strip() else "empty")
