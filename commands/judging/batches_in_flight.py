"""Batches in flight that the current command does not receive, and their open queries."""

from collections.abc import Iterator

from commands.errors import WorkInFlight, counted
from commands.judging.judge import JudgeTask
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.tournament.state import Tournament


def batches_not_received(state: Tournament, judge: JudgeSettings) -> Iterator[str]:
    """Yield a message for each batch in flight that this command does not receive."""
    for batch in state.batches.values():
        if batch.is_open and batch.stream != state.stream:
            yield (
                f"a batch of tournament {batch.stream!r} is in flight; its queries are not sent"
                " again; receive it with that tournament's settings"
            )
        elif batch.is_open and not judge.is_batched:
            yield (
                f"a batch to {batch.planned.judge.label!r} is in flight; its queries are not sent"
                " again; `tourney batch wait` receives it"
            )


def require_none_in_flight(state: Tournament, task: JudgeTask) -> None:
    """Require that no batch in flight holds queries of a task without an answer.

    Raises:
        WorkInFlight: One does: it is another tournament's, or the judge's provider was changed.
    """
    asked = _in_flight(state, task)
    for batch in state.batches.values():
        if batch.is_open and not asked.isdisjoint(batch.planned.queries):
            is_own = batch.stream == state.stream
            settings = f"receive them with the settings of tournament {batch.stream!r}"
            raise WorkInFlight(
                f"{counted(len(asked), 'query', 'queries')} to {task.judge.judge_id!r} in batches"
                f" with the provider;"
                f" {'`tourney batch wait` receives them' if is_own else settings}"
            )


def _in_flight(state: Tournament, task: JudgeTask) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    asked = frozenset(task.keys_in(state)) & state.in_flight
    return frozenset(key for key in asked if not state.is_answered(key))
