"""What may be asked of a tournament: intentions, which a decision accepts or refuses."""

from dataclasses import dataclass
from typing import TypeAlias

from commands.ports import GeneratedText, GenerationFailure, Reply
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    Prompt,
    PromptRegistered,
    Registration,
    TournamentOpened,
)
from ledger.identity import JudgeId
from projections.matches import Cell, Match
from projections.progress import OpenQuery


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

    cell: Cell
    result: GeneratedText | GenerationFailure


@dataclass(frozen=True)
class SubmitQuery:
    """Put an open query to a judge."""

    judge: JudgeId
    query: OpenQuery


@dataclass(frozen=True)
class ReceiveReply:
    """Read a judge's reply."""

    judge: JudgeId
    reply: Reply


@dataclass(frozen=True)
class ReconcilePair:
    """Decide a match from its two verdicts."""

    judge: JudgeId
    policy: str
    match: Match


@dataclass(frozen=True)
class PublishRatings:
    """Claim a run's ratings."""

    ratings: RatingsPublished


Command: TypeAlias = (
    OpenTournament | RecordResponse | SubmitQuery | ReceiveReply | ReconcilePair | PublishRatings
)
