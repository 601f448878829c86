"""tournament.toml: what a user may set, with its defaults and limits."""

from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from commands.settings.sections import BASE_URL, AnyEntrantSection, EvaluationSection, Section
from ledger.events.ratings import (
    BradleyTerryParameters,
    EloParameters,
    IntervalKind,
    IntervalUnit,
    TieModel,
    TieRule,
)
from ledger.events.registration import Provider
from ledger.events.values import MAX_LEVEL, MAX_POINTS, MAX_REPEATS, MIN_LEVEL, MIN_SPREAD
from projections.intervals import shortage
from projections.ratings.elo import BOOTSTRAPS, LEVEL
from projections.tournament.matches import PILOT_SEED

_ELO: Final = EloParameters()  # the defaults
_BT: Final = BradleyTerryParameters()


class TournamentSection(Section):
    """Which tournament, kept where."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    ledger: Path = Path("tournament.db")
    network_ledger: bool = False  # write it on a network file system too
    description: str = ""


class PromptsSection(Section):
    """Where the prompts are."""

    bank: Path = Path("bank.jsonl")


class PilotSection(Section):
    """The subset that `--mode pilot` runs on; strata default to the bank's proportions."""

    size: int = Field(default=50, gt=0)
    seed: int = Field(default=PILOT_SEED, ge=0)
    strata: dict[str, int] | None = None


class GenerationSection(Section):
    """How responses are generated.

    In float32 batch_tokens and device do not change them. Small weights are quickest with one
    thread; cpu_threads left out is torch's own choice.
    """

    max_new_tokens: int = Field(default=256, gt=0)
    batch_tokens: int = Field(default=8192, gt=0)
    seed: int = Field(default=0, ge=0, lt=2**32)
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    cpu_threads: int | None = Field(default=None, gt=0)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")


class RubricSection(Section):
    """One dimension and the file that defines it."""

    dimension: str = Field(min_length=1, pattern=r"^[\w-]+$")
    path: Path


Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
CacheTtl: TypeAlias = Literal["5m", "1h", "off"]
"""How long a provider keeps the prefix that queries of a dimension share."""


class JurorSection(Section):
    """A judge: what determines its replies, and where it is reached.

    `model` is the provider's name for it; for provider `hf` a folder of weights.
    """

    provider: Provider = "reference"
    effort: Effort = "low"
    max_tokens: int = Field(default=4096, gt=0)  # of a reply, thinking included
    protocol: Literal["line", "schema"] = "line"
    tie_band: float = Field(default=1.0, ge=0)  # reference: chrF closer than this is a tie
    base_url: str | None = Field(default=None, pattern=BASE_URL)  # endpoint
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"  # hf


class JudgeSection(JurorSection):
    """The tournament's judge, one model for each mode, and how judges are asked."""

    pilot_model: str = "claude-sonnet-5-5"
    headline_model: str = "claude-opus-5-5"
    retries: int = Field(default=1, ge=0)  # of a reply without a verdict
    skip_identical: bool = True  # two identical responses tie unasked
    max_usd: float | None = Field(default=None, gt=0)  # nothing lifts it
    prices: Path | None = None  # a table that goes before the shipped one
    cache: CacheTtl = "5m"
    prewarm: bool = True  # headline: one request for each rubric goes first, when it pays
    batch_queries: int = Field(default=2000, ge=1, le=100_000)
    poll_s: float = Field(default=60.0, gt=0)  # between looks at batches, at most
    settle_s: float = Field(default=300.0, ge=0)  # until a batch sent without an answer shows
    concurrency: int = Field(default=8, ge=1, le=256)  # requests at a time


class JurySection(JurorSection):
    """A further judge, chosen by `--judge ID`."""

    id: str = Field(min_length=1, pattern=r"^[\w.-]+$")
    model: str = Field(min_length=1)


Rating: TypeAlias = Annotated[float, Field(ge=-MAX_POINTS, le=MAX_POINTS)]


class EloSection(Section):
    """How ratings are computed; K and all else can be chosen again at every reading."""

    k: float = Field(default=_ELO.k, gt=0, le=MAX_POINTS)
    k_sweep: tuple[Annotated[float, Field(gt=0, le=MAX_POINTS)], ...] = _ELO.k_sweep
    initial_rating: Rating = _ELO.initial_rating
    permutations: int = Field(default=_ELO.permutations, ge=1, le=MAX_REPEATS)
    seed: int = Field(default=_ELO.seed, ge=0)
    ties: TieRule = _ELO.ties
    bootstraps: int = Field(default=BOOTSTRAPS, ge=0, le=MAX_REPEATS)  # of the prompts; 0: none

    @field_validator("bootstraps")
    @classmethod
    def _are_enough(cls, bootstraps: int) -> int:
        return _enough(bootstraps, LEVEL) if bootstraps else bootstraps

    @property
    def parameters(self) -> EloParameters:
        """The same, as events keep them."""
        return EloParameters(**self.model_dump())


class BradleyTerrySection(Section):
    """How Bradley-Terry ratings are computed; all of it can be chosen again at every reading.

    An anchor has anchor_rating on its dimensions; without one the mean rating is 1000.
    """

    ties: TieModel = _BT.ties
    # in Elo points about the mean
    prior_sd: float | None = Field(default=None, ge=MIN_SPREAD, le=MAX_POINTS)
    anchor: str | None = None  # an entrant
    anchor_rating: Rating = _BT.anchor_rating
    interval: IntervalKind = _BT.interval
    unit: IntervalUnit = _BT.unit
    level: float = Field(default=_BT.level, ge=MIN_LEVEL, le=MAX_LEVEL)
    # of bayesian and multinomial intervals
    resamples: int = Field(default=_BT.resamples, ge=1, le=MAX_REPEATS, validate_default=True)
    seed: int = Field(default=_BT.seed, ge=0)

    @field_validator("resamples")
    @classmethod
    def _are_enough(cls, resamples: int, info: ValidationInfo) -> int:
        is_drawn = info.data.get("interval", "sandwich") != "sandwich"
        return _enough(resamples, info.data.get("level", 0.0)) if is_drawn else resamples

    @property
    def parameters(self) -> BradleyTerryParameters:
        """The same, as events keep them."""
        return BradleyTerryParameters(**self.model_dump())


def _enough(resamples: int, level: float) -> int:
    """Refuse an interval by too few resamples."""
    if why := shortage(resamples, level):
        raise PydanticCustomError("resamples", "{why}", {"why": why})
    return resamples


class Settings(Section):
    """The whole file."""

    tournament: TournamentSection
    prompts: PromptsSection = PromptsSection()
    pilot: PilotSection = PilotSection()
    generation: GenerationSection = GenerationSection()
    entrants: tuple[AnyEntrantSection, ...] = Field(min_length=2)
    rubrics: tuple[RubricSection, ...] = Field(min_length=1)
    judge: JudgeSection = JudgeSection()
    jury: tuple[JurySection, ...] = ()
    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    evaluations: tuple[EvaluationSection, ...] = ()
