"""What was claimed: the ratings of a run and the bytes of its artifacts."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ledger.events.fact import Fact, Value
from ledger.identity import Digest, EntrantId, JudgeId, PromptId

Mode = Literal["pilot", "headline"]
TieRule = Literal["drop", "half"]


class EloParameters(Value):
    """Everything an Elo rating depends on beside the matches."""

    k: float = Field(default=16.0, gt=0)
    k_sweep: tuple[Annotated[float, Field(gt=0)], ...] = (1.0, 4.0, 8.0, 16.0, 32.0)
    initial_rating: float = 1400.0  # Boubdir et al. 2023
    permutations: int = Field(default=500, ge=1)
    seed: int = Field(default=20260425, ge=0)
    ties: TieRule = "drop"


class Terms(Value):
    """What is rated, and how."""

    mode: Mode
    judge: JudgeId
    policy: str
    elo: EloParameters
    entrants: tuple[EntrantId, ...]
    prompts: tuple[PromptId, ...]


class Publication(Value):
    """What a run claims: enough to fold its artifacts again from the first event."""

    run: str  # the artifacts' folder
    terms: Terms
    started_at: datetime
    as_of: int = Field(gt=0)  # the last position that was read
    head: Digest  # the chain's value there


class ArtifactDigest(Value):
    """One file of a run, relative to its folder, and the digest of its bytes."""

    path: str
    digest: Digest


class RatingsPublished(Fact):
    """A run's ratings were published: what a later replay must reproduce."""

    type: Literal["RatingsPublished"] = "RatingsPublished"
    publication: Publication
    artifacts: tuple[ArtifactDigest, ...]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Runs are named once."""
        return (self.publication.run,)
