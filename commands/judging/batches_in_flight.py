"""Batches in flight that the current command does not receive, and their open queries."""

from collections.abc import Collection, Iterator

from commands.errors import WorkInFlight, counted
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament.matches import queries_to
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


def require_none_in_flight(
    state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]
) -> None:
    """Require that no batch in flight holds queries of this judge without a verdict.

    Raises:
        WorkInFlight: One does: it is another tournament's, or the judge's provider was changed.
    """
    asked = _in_flight(state, judge, prompts)
    for batch in state.batches.values():
        if batch.is_open and not asked.isdisjoint(batch.planned.queries):
            is_own = batch.stream == state.stream
            settings = f"receive them with the settings of tournament {batch.stream!r}"
            raise WorkInFlight(
                f"{counted(len(asked), 'query', 'queries')} to {judge.judge_id!r} in batches with"
                f" the provider; {'`tourney batch wait` receives them' if is_own else settings}"
            )


def _in_flight(
    state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]
) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    asked = {question.query_key for question in queries_to(state, prompts, judge)}
    return frozenset(key for key in asked & state.in_flight if key not in state.verdicts)
