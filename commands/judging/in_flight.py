"""Batches that the command at hand does not receive, and what they still ask."""

from collections.abc import Collection, Iterator

from commands.errors import WorkInFlight, counted
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament.batches import Batch
from projections.tournament.matches import match_of, pairings
from projections.tournament.state import Tournament


def batches_not_received(state: Tournament, judge: JudgeSettings) -> Iterator[str]:
    """Say which batches keep queries back that this command does not receive."""
    for batch in state.batches.values():
        if batch.is_open and batch.stream != state.stream:
            yield (
                f"a batch of tournament {batch.stream!r} is in flight: what it asks is not asked"
                " again; receive it by its own settings"
            )
        elif batch.is_open and not judge.is_batched:
            yield (
                f"a batch to {batch.planned.judge.label!r} is in flight: what it asks is not asked"
                " again; `tourney batch wait` receives it"
            )


def require_none_in_flight(
    state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]
) -> None:
    """Refuse to call judging done while a batch asks what has no verdict, whoever sent it.

    Raises:
        WorkInFlight: One does: the judge's provider was another, or it is another tournament's.
    """
    asked = _in_flight(state, judge, prompts)
    for batch in state.batches.values():
        if batch.is_open and not asked.isdisjoint(batch.planned.queries):
            raise WorkInFlight(
                f"{counted(len(asked), 'query', 'queries')} to {judge.judge_id!r} in batches with"
                f" the provider; {_how_to_receive(batch, state)}"
            )


def _in_flight(
    state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]
) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    matches = (match_of(state, pairing, judge) for pairing in pairings(state, prompts))
    questions = (each for match in matches if match for each in (match.forward, match.swapped))
    asked = frozenset(question.query_key for question in questions) & state.in_flight
    return frozenset(key for key in asked if key not in state.verdicts)


def _how_to_receive(batch: Batch, state: Tournament) -> str:
    if batch.stream == state.stream:
        return "`tourney batch wait` receives them"
    return f"receive them by the settings of tournament {batch.stream!r}"
