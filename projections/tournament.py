"""What is known of one tournament: the state that decisions and every other view start from.

Responses and verdicts are taken from the whole ledger, since content names them: another
tournament in the same ledger owes nothing that this one has. All else is of its own stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

from immutables import Map

from ledger.events.fact import Value
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    Outcome,
    PairKey,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    Entrant,
    EntrantRegistered,
    JudgeRegistered,
    JudgeSettings,
    Prompt,
    PromptRegistered,
    Reference,
    Registration,
    Rubric,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, JudgeId, StreamId
from ledger.recorded import Recorded
from projections.fold import Projection

Thing = TypeVar("Thing", bound=Value)
Work: TypeAlias = ResponseFailed | JudgeQuerySubmitted | JudgeQueryFailed | PairReconciled


class Given(NamedTuple):
    """A verdict and when it was recorded."""

    event: VerdictReceived
    recorded_at: datetime


@dataclass(frozen=True)
class Tournament:
    """Everything recorded that a tournament can use; registered things by label and digest."""

    stream: StreamId
    version: int = 0
    newest: Recorded | None = None  # the last event that could change a rating
    opening: TournamentOpened | None = None
    prompts: Map[Reference, Prompt] = Map()
    rubrics: Map[Reference, Rubric] = Map()
    entrants: Map[Reference, Entrant] = Map()
    judges: Map[Reference, JudgeSettings] = Map()
    responses: Map[Digest, ResponseGenerated] = Map()
    response_failures: Map[Digest, ResponseFailed] = Map()
    attempts: Map[Digest, int] = Map()  # submissions by query key
    verdicts: Map[Digest, Given] = Map()
    query_failures: Map[Digest, JudgeQueryFailed] = Map()  # the newest by query key
    outcomes: Map[PairKey, Outcome] = Map()
    publications: tuple[RatingsPublished, ...] = ()

    @cached_property
    def roster(self) -> tuple[Entrant, ...]:
        """The entrants of the newest opening, in its order."""
        return _resolved(self.opening.entrants if self.opening else (), self.entrants)

    @cached_property
    def bank(self) -> tuple[Prompt, ...]:
        """The prompts of the newest opening, in its order."""
        return _resolved(self.opening.prompts if self.opening else (), self.prompts)

    @cached_property
    def dimensions(self) -> tuple[Rubric, ...]:
        """The rubrics of the newest opening, in its order."""
        return _resolved(self.opening.rubrics if self.opening else (), self.rubrics)

    @cached_property
    def panel(self) -> tuple[JudgeSettings, ...]:
        """The judges of the newest opening, in its order."""
        return _resolved(self.opening.judges if self.opening else (), self.judges)

    def judge(self, judge_id: JudgeId) -> JudgeSettings:
        """Return a judge of the panel.

        Raises:
            KeyError: Nobody of that name is on it.
        """
        return {judge.judge_id: judge for judge in self.panel}[judge_id]


def tournament_of(stream: StreamId) -> Projection[Tournament]:
    """Return the projection that reads one tournament out of a ledger."""
    return Projection(initial=Tournament(stream), evolve=evolve)


def evolve(state: Tournament, recorded: Recorded) -> Tournament:
    """Return what is known after one more event."""
    event = recorded.event
    version = recorded.version if recorded.stream == state.stream else state.version
    known = partial(replace, state, version=version, newest=recorded)
    match event:
        case ResponseGenerated():
            return known(responses=state.responses.set(event.response_key, event))
        case VerdictReceived():
            given = Given(event, recorded.recorded_at)
            return known(verdicts=state.verdicts.set(event.query_key, given))
        case RatingsPublished():
            is_own = recorded.stream == state.stream
            publications = (*state.publications, event) if is_own else state.publications
            return replace(state, version=version, publications=publications)
        case _ if recorded.stream == state.stream:
            return known(**_of_own_stream(state, event))
        case _:
            return state


def _of_own_stream(
    state: Tournament, event: TournamentOpened | Registration | Work
) -> Mapping[str, object]:
    """Return the fields that an event of the tournament's own stream changes."""
    match event:
        case TournamentOpened():
            return {"opening": event}
        case PromptRegistered(reference=reference, prompt=prompt):
            return {"prompts": state.prompts.set(reference, prompt)}
        case RubricRegistered(reference=reference, rubric=rubric):
            return {"rubrics": state.rubrics.set(reference, rubric)}
        case EntrantRegistered(reference=reference, entrant=entrant):
            return {"entrants": state.entrants.set(reference, entrant)}
        case JudgeRegistered(reference=reference, judge=judge):
            return {"judges": state.judges.set(reference, judge)}
        case _:
            return _of_work(state, event)


def _of_work(state: Tournament, event: Work) -> Mapping[str, object]:
    match event:
        case ResponseFailed(response_key=key):
            return {"response_failures": state.response_failures.set(key, event)}
        case JudgeQuerySubmitted(query_key=key, attempt=attempt):
            return {"attempts": state.attempts.set(key, attempt)}
        case JudgeQueryFailed(query_key=key):
            return {"query_failures": state.query_failures.set(key, event)}
        case PairReconciled(natural_key=key, outcome=outcome):
            return {"outcomes": state.outcomes.set(key, outcome)}
        case _:
            assert_never(event)


def _resolved(references: tuple[Reference, ...], known: Map[Reference, Thing]) -> tuple[Thing, ...]:
    """Return the registered things; one not registered yet is left out until it is."""
    return tuple(known[reference] for reference in references if reference in known)
