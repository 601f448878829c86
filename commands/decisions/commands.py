"""The commands to a tournament: intentions that `decide` turns into events or refuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from commands.ports import Answer, BatchState, GeneratedText, GenerationFailure
from ledger.events import registration
from ledger.events.judging import JudgeQueryFailed, ScoreShared
from ledger.events.money import Price
from ledger.events.ratings import RatingsPublished
from ledger.events.requests import Charge, ParameterRefused, ServerFacts
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, EntrantId, JudgeId
from projections.tournament.matches import Match, PlannedResponse
from projections.tournament.remaining import Unanswered


@dataclass(frozen=True)
class OpenTournament:
    """Open a tournament, or open it again if its configuration changed, and register the parts."""

    opening: registration.TournamentOpened  # `decide` gives its number
    registrations: tuple[registration.Registration, ...]

    @property
    def bank(self) -> tuple[registration.Prompt, ...]:
        """The prompts to register, in order."""
        events = self.registrations
        return tuple(
            event.prompt for event in events if isinstance(event, registration.PromptRegistered)
        )

    @property
    def roster(self) -> tuple[registration.Entrant, ...]:
        """The entrants to register, in order."""
        events = self.registrations
        return tuple(
            event.entrant for event in events if isinstance(event, registration.EntrantRegistered)
        )

    @property
    def dimensions(self) -> tuple[registration.Rubric, ...]:
        """The rubrics that pairs are judged by; others score evaluations."""
        return tuple(
            event.rubric
            for event in self.registrations
            if isinstance(event, registration.RubricRegistered)
            and event.reference in self.opening.rubrics
        )


@dataclass(frozen=True)
class RecordResponse:
    """Record what a generator made of a planned response."""

    cell: PlannedResponse
    result: GeneratedText | GenerationFailure


@dataclass(frozen=True)
class RecordFact:
    """Record what was found elsewhere as it is, unless it is known.

    That is a response that was imported, a parameter that a server does not take, or further
    samples with an answer that was sent to a judge before.
    """

    fact: ResponseGenerated | ParameterRefused | ScoreShared


@dataclass(frozen=True)
class SubmitRequests:
    """Record that requests are sent to an endpoint entrant."""

    entrant: EntrantId
    model: str
    worst_usd: Mapping[Digest, float | None]  # by request; None: the price is unknown
    server: ServerFacts | None = None  # what the server says of itself; None: not asked, or nothing


@dataclass(frozen=True)
class SettleRequests:
    """Record what became of requests to an endpoint entrant, and what they cost."""

    entrant: EntrantId
    model: str
    charges: tuple[Charge, ...]
    price_table: str | None = None


@dataclass(frozen=True)
class SubmitQuery:
    """Record that an open query is sent to a judge."""

    judge: JudgeId
    query: Unanswered
    worst_usd: float | None = 0.0  # None: the price is unknown


@dataclass(frozen=True)
class ReceiveAnswer:
    """Record a judge's answer, with the price that holds when it comes.

    Without an answer, or if nobody says how many tokens it took, it may have cost `worst_usd`.
    """

    judge: registration.JudgeSettings
    answer: Answer
    price: Price | None = None
    worst_usd: float | None = 0.0


@dataclass(frozen=True)
class ReopenQuery:
    """Ask a query again whose last attempt failed for good."""

    failure: JudgeQueryFailed


@dataclass(frozen=True)
class PlanBatch:
    """Record the plan to send requests to a judge or an entrant as one batch."""

    whom: registration.Reference
    requests: tuple[Digest, ...]  # query keys, or response keys
    expected_usd: float | None
    worst_usd: float | None
    cap_usd: float | None
    planned_at: datetime


@dataclass(frozen=True)
class SubmitBatch:
    """Record that a planned batch is with the provider, and which queries it has."""

    batch_key: Digest
    state: BatchState
    queries: tuple[Unanswered, ...] = ()  # none to an entrant: those requests are on record


@dataclass(frozen=True)
class DropBatch:
    """Record that a planned batch was never created."""

    batch_key: Digest
    why: str


@dataclass(frozen=True)
class EndBatch:
    """Close a batch whose results are all recorded, or lost."""

    batch_key: Digest
    state: BatchState


@dataclass(frozen=True)
class ReopenBatch:
    """Record that a batch that was closed is with the provider, and what of it lacks a result."""

    batch_key: Digest
    state: BatchState
    lost: tuple[Unanswered | Digest, ...]  # queries, or the keys of requests to an entrant


@dataclass(frozen=True)
class ReconcilePair:
    """Reconcile a match's two verdicts, or tie two identical responses."""

    judge: JudgeId
    match: Match


@dataclass(frozen=True)
class TakeLook:
    """Look at the verdicts on the prompts so far: which pairs are decided, and which futile?"""

    number: int  # of the tournament's looks


@dataclass(frozen=True)
class PublishRatings:
    """Record the digests of a run's published files."""

    ratings: RatingsPublished


Command: TypeAlias = (
    OpenTournament
    | RecordResponse
    | RecordFact
    | SubmitRequests
    | SettleRequests
    | SubmitQuery
    | ReceiveAnswer
    | ReopenQuery
    | PlanBatch
    | SubmitBatch
    | DropBatch
    | EndBatch
    | ReopenBatch
    | ReconcilePair
    | TakeLook
    | PublishRatings
)
