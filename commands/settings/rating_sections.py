"""[elo] and [bradley_terry]: the settings of ratings; defaults are those of the events."""

from typing import Annotated, Final, TypeAlias

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from commands.settings.sections import Section
from ledger.events import ratings
from ledger.events.values import MAX_LEVEL, MAX_POINTS, MAX_REPEATS, MIN_LEVEL, MIN_SPREAD
from projections.intervals import too_few_resamples
from projections.ratings.elo.uncertainty import BOOTSTRAPS, LEVEL

_ELO: Final = ratings.EloParameters()  # the defaults
_BT: Final = ratings.BradleyTerryParameters()

Rating: TypeAlias = Annotated[float, Field(ge=-MAX_POINTS, le=MAX_POINTS)]


class EloSection(Section):
    """Say how Elo ratings are computed. Options of `tourney project elo` override each key."""

    k: float = Field(default=_ELO.k, gt=0, le=MAX_POINTS)
    """Largest rating change per match, in points."""
    k_sweep: tuple[Annotated[float, Field(gt=0, le=MAX_POINTS)], ...] = _ELO.k_sweep
    """Further values of K in a run's `elo_results.json`."""
    initial_rating: Rating = _ELO.initial_rating
    """Rating that every entrant starts from."""
    permutations: int = Field(default=_ELO.permutations, ge=1, le=MAX_REPEATS)
    """Random match orders to average over."""
    seed: int = Field(default=_ELO.seed, ge=0)
    """Seed of orders and resamples."""
    ties: ratings.TieRule = _ELO.ties
    """`drop` ignores ties; `half` counts each as half a win for both."""
    bootstraps: int = Field(default=BOOTSTRAPS, ge=0, le=MAX_REPEATS)
    """Resamples of the prompts, for the 95 % interval: 40 or more, or 0 for none."""

    @field_validator("bootstraps")
    @classmethod
    def _are_enough(cls, bootstraps: int) -> int:
        return _enough(bootstraps, LEVEL) if bootstraps else bootstraps

    @property
    def parameters(self) -> ratings.EloParameters:
        """The settings as events record them."""
        return ratings.EloParameters(**self.model_dump())


class BradleyTerrySection(Section):
    """Say how Bradley-Terry ratings are computed. Options of `tourney project bt` override it."""

    ties: ratings.TieModel = _BT.ties
    """`half` counts a tie as half a win for both; `davidson` gives ties a probability of their
    own."""
    prior_sd: float | None = Field(default=None, ge=MIN_SPREAD, le=MAX_POINTS)
    """Standard deviation of a normal prior on ratings, in Elo points. Default: no prior."""
    anchor: str | None = None
    """Entrant whose rating is fixed. Default: the mean rating is 1000."""
    anchor_rating: Rating = _BT.anchor_rating
    """The rating of the anchor."""
    interval: ratings.IntervalKind = _BT.interval
    """`sandwich` is cluster-robust, in closed form; `bayesian` and `multinomial` are bootstraps."""
    unit: ratings.IntervalUnit = _BT.unit
    """Clusters of intervals: `prompts`, or `battles` as if they were independent."""
    level: float = Field(default=_BT.level, ge=MIN_LEVEL, le=MAX_LEVEL)
    """Confidence level of intervals."""
    resamples: int = Field(default=_BT.resamples, ge=1, le=MAX_REPEATS, validate_default=True)
    """Resamples of a bootstrap."""
    seed: int = Field(default=_BT.seed, ge=0)
    """Seed of a bootstrap."""

    @field_validator("resamples")
    @classmethod
    def _are_enough(cls, resamples: int, info: ValidationInfo) -> int:
        is_drawn = info.data.get("interval", "sandwich") != "sandwich"
        return _enough(resamples, info.data.get("level", 0.0)) if is_drawn else resamples

    @property
    def parameters(self) -> ratings.BradleyTerryParameters:
        """The settings as events record them."""
        return ratings.BradleyTerryParameters(**self.model_dump())


def _enough(resamples: int, level: float) -> int:
    """Reject too few resamples for the interval's level."""
    if why := too_few_resamples(resamples, level):
        raise PydanticCustomError("resamples", "{why}", {"why": why})
    return resamples
