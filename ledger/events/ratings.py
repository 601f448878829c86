"""What was claimed: the ratings of a run and the bytes of its artifacts."""

from datetime import datetime
from typing import Literal

from ledger.events.fact import Fact, Value
from ledger.events.limits import Count, Ordinal, Positive
from ledger.identity import Digest, EntrantId, JudgeId, PromptId

Mode = Literal["pilot", "headline"]
TieRule = Literal["drop", "half"]


class EloParameters(Value, frozen=True):
    """Everything an Elo rating depends on beside the matches."""

    k: Positive = 16.0
    k_sweep: tuple[Positive, ...] = (1.0, 4.0, 8.0, 16.0, 32.0)
    initial_rating: float = 1400.0  # Boubdir et al. 2023
    permutations: Ordinal = 500
    seed: Count = 20260425
    ties: TieRule = "drop"


class Terms(Value, frozen=True):
    """What is rated, and how."""

    mode: Mode
    judge: JudgeId
    policy: str
    elo: EloParameters
    entrants: tuple[EntrantId, ...]
    prompts: tuple[PromptId, ...]


class Publication(Value, frozen=True):
    """What a run claims: enough to fold its artifacts again from the first event."""

    run: str  # the artifacts' folder
    terms: Terms
    started_at: datetime
    as_of: Ordinal  # the last position that was read
    head: Digest  # the chain's value there


class ArtifactDigest(Value, frozen=True):
    """One file of a run, relative to its folder, and the digest of its bytes."""

    path: str
    digest: Digest


class RatingsPublished(Fact, frozen=True):
    """A run's ratings were published: what a later replay must reproduce."""

    publication: Publication
    artifacts: tuple[ArtifactDigest, ...]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Runs are named once."""
        return (self.publication.run,)
