"""Publications: the ratings of a run, their parameters, and the digests of its artifacts."""

from datetime import datetime
from typing import Literal

from ledger.events import values
from ledger.identity import Digest, EntrantId, JudgeId, PromptId

Mode = Literal["pilot", "headline"]
TieRule = Literal["drop", "half"]
TieModel = Literal["half", "davidson"]
IntervalKind = Literal["sandwich", "bayesian", "multinomial"]
IntervalUnit = Literal["prompts", "battles"]
RatedBy = Literal["outcomes", "verdicts"]
Arithmetic = Literal[1, 2]


class EloParameters(values.Value, frozen=True):
    """Everything besides the matches that determines an Elo rating."""

    k: values.Step = 16.0
    k_sweep: tuple[values.Step, ...] = (1.0, 4.0, 8.0, 16.0, 32.0)
    initial_rating: values.Rating = 1400.0  # Boubdir et al. 2023
    permutations: values.Repeats = 500
    seed: values.Count = 20260425
    ties: TieRule = "drop"
    bootstraps: values.RepeatsIfAny = 0  # resamples of the prompts, for an interval; 0: none


class BradleyTerryParameters(values.Value, frozen=True):
    """Everything besides the battles that determines a Bradley-Terry rating and its interval."""

    ties: TieModel = "half"  # of a win each, or an outcome with a probability of its own
    prior_sd: values.Spread | None = None  # Elo points about the mean; None: no prior
    anchor: EntrantId | None = None  # has anchor_rating; None: a component has mean 1000
    anchor_rating: values.Rating = 1000.0
    interval: IntervalKind = "sandwich"
    unit: IntervalUnit = "prompts"  # what is one piece of evidence
    level: values.Level = 0.95
    resamples: values.Repeats = 1000  # of a bootstrap
    seed: values.Count = 20260425  # of a bootstrap


class PublicationTerms(values.Value, frozen=True):
    """What a publication covers: judge, policy, entrants, prompts and rating parameters.

    Bradley-Terry ratings and battles count each order's verdict by itself. Earlier ones are rated
    by outcomes: a pair on which the orders disagree is left out, and prompts are told apart by id,
    not by text.

    Arithmetic 1 is that of earlier versions: its Elo ratings differ by up to 1e-8 points, and the
    degrees of freedom of a Bradley-Terry interval perhaps by 1.
    """

    mode: Mode
    judge: JudgeId
    policy: str
    elo: EloParameters
    entrants: tuple[EntrantId, ...]
    prompts: tuple[PromptId, ...]
    bradley_terry: BradleyTerryParameters
    rated_by: RatedBy = "verdicts"
    arithmetic: Arithmetic = 2


class Publication(values.Value, frozen=True):
    """What a run published: enough to compute its artifacts again from the first event."""

    run: str  # the artifacts' folder
    terms: PublicationTerms
    started_at: datetime
    as_of: values.Ordinal  # the last position that was read
    head: Digest  # the chain's value there


class ArtifactDigest(values.Value, frozen=True):
    """One file of a run, relative to its folder, and the digest of its bytes."""

    path: str
    digest: Digest


class RatingsPublished(values.Fact, frozen=True):
    """A run's ratings were published; a later replay must reproduce them."""

    schema_version = 3
    publication: Publication
    artifacts: tuple[ArtifactDigest, ...]

    @property
    def natural_key(self) -> tuple[str, ...]:
        """A run is published once."""
        return (self.publication.run,)
