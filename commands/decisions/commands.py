"""What may be asked of a tournament: intentions, which a decision accepts or refuses."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from commands.ports import Answer, BatchState, GeneratedText, GenerationFailure
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    JudgeSettings,
    Prompt,
    PromptRegistered,
    Registration,
    TournamentOpened,
)
from ledger.events.responses import ResponseGenerated
from ledger.events.values import Price
from ledger.identity import Digest, JudgeId
from projections.tournament.matches import Match, PlannedResponse
from projections.tournament.progress import OpenQuery


@dataclass(frozen=True)
class OpenTournament:
    """Open under a configuration, or open again if it changed, and register what it names."""

    opening: TournamentOpened  # its number is given by the decision
    registrations: tuple[Registration, ...]

    @property
    def bank(self) -> tuple[Prompt, ...]:
        """The prompts that it registers, in order."""
        events = self.registrations
        return tuple(event.prompt for event in events if isinstance(event, PromptRegistered))


@dataclass(frozen=True)
class RecordResponse:
    """Keep what a generator made for a cell."""

    cell: PlannedResponse
    result: GeneratedText | GenerationFailure


@dataclass(frozen=True)
class ImportResponse:
    """Keep a response that was generated elsewhere."""

    response: ResponseGenerated


@dataclass(frozen=True)
class SubmitQuery:
    """Put an open query to a judge."""

    judge: JudgeId
    query: OpenQuery


@dataclass(frozen=True)
class ReceiveAnswer:
    """Read a judge's answer, at the price as it is known when that comes."""

    judge: JudgeSettings
    answer: Answer
    price: Price | None = None


@dataclass(frozen=True)
class PlanBatch:
    """Intend to send open queries as one batch."""

    judge: JudgeSettings
    queries: tuple[OpenQuery, ...]
    expected_usd: float | None
    worst_usd: float | None
    cap_usd: float | None
    planned_at: datetime


@dataclass(frozen=True)
class SubmitBatch:
    """Take note that a planned batch is with the provider, and of what it asks."""

    batch_key: Digest
    state: BatchState
    queries: tuple[OpenQuery, ...]


@dataclass(frozen=True)
class DropBatch:
    """Take note that a planned batch does not exist."""

    batch_key: Digest
    why: str


@dataclass(frozen=True)
class EndBatch:
    """Close a batch whose results were all read, or are lost."""

    batch_key: Digest
    state: BatchState


@dataclass(frozen=True)
class ReconcilePair:
    """Decide a match from its two verdicts, or from its two responses if they are identical."""

    judge: JudgeId
    policy: str
    match: Match


@dataclass(frozen=True)
class PublishRatings:
    """Claim a run's ratings."""

    ratings: RatingsPublished


Command: TypeAlias = (
    OpenTournament
    | RecordResponse
    | ImportResponse
    | SubmitQuery
    | ReceiveAnswer
    | PlanBatch
    | SubmitBatch
    | DropBatch
    | EndBatch
    | ReconcilePair
    | PublishRatings
)
