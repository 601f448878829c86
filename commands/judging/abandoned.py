"""Queries sent by a process that died: they were perhaps billed, and are asked again."""

from collections.abc import Mapping

from commands.decisions.commands import ReceiveAnswer
from commands.decisions.recorder import Recorder
from commands.ports import NoReply
from ledger.events.judging import JudgeQueryFailed
from ledger.identity import Digest


def close_abandoned(recorder: Recorder) -> Mapping[Digest, int]:
    """Record that requests of a process that died were perhaps billed.

    Returns:
        The queries of all requests that were perhaps billed, with the attempt: the command that
        begins may send these again, and not what is lost from now on.
    """
    state, why = recorder.state, "the process ended before its answer"
    judges = {judge.judge_id: judge for judge in state.judges.values()}
    lost = (
        ReceiveAnswer(
            judges[sent.judge],
            NoReply(query_key, "errored", why, "perhaps billed"),
            worst_usd=sent.worst_usd,
        )
        for query_key, sent in state.under_way.items()
    )
    recorder.record(*lost)
    failures = recorder.state.query_failures
    return {key: failure.attempt for key, failure in failures.items() if is_lost(failure)}


def is_lost(failure: JudgeQueryFailed | None, attempt_before: int | None = None) -> bool:
    """Say whether a request was perhaps billed, other than that of an earlier attempt."""
    if failure is None or failure.fate != "perhaps billed":
        return False
    return failure.attempt != attempt_before
