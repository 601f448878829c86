"""Decide which events a command adds to a tournament. Pure.

Repeating a command adds nothing, but for requests to entrants: each may be sent again.

The other half of the decider, `advance`, is in `projections.tournament.folding`.
"""

from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from commands.decisions import commands
from commands.decisions._batches import decide_on_batch, decide_on_requests
from commands.decisions._queries import decide_on_query
from commands.ports import GeneratedText, GenerationFailure
from ledger.events import judging, registration, responses
from ledger.events.registry import Event
from ledger.events.requests import ParameterRefused
from projections.ratings.looks import look_now
from projections.tournament.matches import PlannedResponse
from projections.tournament.state import Tournament
from projections.verdicts.policies import swap_consistent


def decide(command: commands.Command, state: Tournament) -> tuple[Event, ...]:
    """Return the events that a command adds; none if they are recorded already.

    Raises:
        TourneyError: An answer came for a query that was not submitted.
        KeyError: A match to reconcile lacks a verdict.
    """
    match command:
        case commands.OpenTournament():
            return _open(command, state)
        case commands.RecordResponse():
            return _record(command, state)
        case commands.RecordFact(fact=fact):
            return () if _is_known(fact, state) else (fact,)
        case commands.SubmitRequests() | commands.SettleRequests():
            return (decide_on_requests(command, state),)
        case commands.SubmitQuery() | commands.ReceiveAnswer() | commands.ReopenQuery():
            return decide_on_query(command, state)
        case (
            commands.PlanBatch()
            | commands.SubmitBatch()
            | commands.DropBatch()
            | commands.EndBatch()
            | commands.ReopenBatch()
        ):
            return decide_on_batch(command, state)
        case commands.ReconcilePair() | commands.TakeLook():
            return _conclude(command, state)
        case commands.PublishRatings(ratings=ratings):
            return () if ratings in state.publications else (ratings,)
        case _:
            assert_never(command)


def _open(command: commands.OpenTournament, state: Tournament) -> tuple[Event, ...]:
    last = state.opening
    opening = replace(command.opening, opening=last.opening if last else 1)
    if last is not None and opening != last:
        opening = replace(opening, opening=last.opening + 1)
    openings = () if opening == last else (opening,)
    return (*openings, *(event for event in command.registrations if not _knows(state, event)))


def _knows(state: Tournament, event: registration.Registration) -> bool:
    match event:
        case registration.PromptRegistered():
            return event.reference in state.prompts
        case registration.RubricRegistered():
            return event.reference in state.rubrics
        case registration.EntrantRegistered():
            return event.reference in state.entrants
        case registration.JudgeRegistered():
            return event.reference in state.judges
        case _:
            assert_never(event)


def _is_known(
    fact: responses.ResponseGenerated | ParameterRefused | judging.ScoreShared, state: Tournament
) -> bool:
    match fact:
        case responses.ResponseGenerated():
            return fact.response_key in state.responses
        case ParameterRefused():
            return any(
                parameter.natural_key == fact.natural_key for parameter in state.refused_parameters
            )
        case judging.ScoreShared():
            return False  # the evaluations know, and are not asked here


def _record(command: commands.RecordResponse, state: Tournament) -> tuple[Event, ...]:
    cell, result = command.cell, command.result
    if cell.response_key in state.responses:
        return ()
    if isinstance(result, GeneratedText):
        return (_generated(cell, result),)
    last = state.response_failures.get(cell.response_key)
    is_known = last is not None and last.reason == result.reason
    return () if is_known else (_failed(cell, result),)


def _generated(cell: PlannedResponse, result: GeneratedText) -> responses.ResponseGenerated:
    return cell.made(
        text=result.text,
        finish_reason=result.finish_reason,
        n_prompt_tokens=result.n_prompt_tokens,
        n_generated_tokens=result.n_generated_tokens,
        elapsed_s=result.elapsed_s,
        p_correct=result.p_correct,
        diagnostics=result.diagnostics,
        imported_from=result.imported_from,
        reasoning=result.reasoning or UNSET,
        attention=result.attention or UNSET,
        usd=UNSET if result.usd is None else result.usd,
    )


def _failed(cell: PlannedResponse, result: GenerationFailure) -> responses.ResponseFailed:
    return responses.ResponseFailed(
        response_key=cell.response_key,
        entrant_id=cell.entrant.entrant_id,
        prompt_id=cell.prompt.prompt_id,
        reason=result.reason,
        detail=result.detail,
        usage=result.usage,
    )


def _conclude(
    command: commands.ReconcilePair | commands.TakeLook, state: Tournament
) -> tuple[Event, ...]:
    if isinstance(command, commands.TakeLook):
        return () if command.number <= len(state.looks) else (look_now(state),)
    key = command.match.key(command.judge)
    if key in state.outcomes:
        return ()
    forward, swapped = state.verdicts.get(key.forward), state.verdicts.get(key.swapped)
    if command.match.is_identical and forward is None:
        return (judging.PairReconciled(outcome="tie", basis="identical", **key._asdict()),)
    if forward is None or swapped is None:
        raise KeyError(key)
    outcome = swap_consistent(forward.event.verdict, swapped.event.verdict)
    return (judging.PairReconciled(outcome=outcome, **key._asdict()),)
