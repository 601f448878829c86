"""Options of `tourney project bt`, and the parameters that they make."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import inf, isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from commands.errors import ConfigurationError
from commands.reading.parameters import bradley_terry_parameters
from ledger.events.ratings import BradleyTerryParameters, TieModel
from ledger.events.values import MAX_POINTS
from projections.battles.imported import BattlesOfSet
from projections.battles.soft_scores import TEMPERATURE
from projections.ratings.bradley_terry.comparisons import Adjustment
from projections.ratings.tournament import FEATURES

STYLE = "style"
_MAX_WEIGHT: Final = 1e6  # of a dimension, so that no sum overflows; only ratios count


class ModelOptions(NamedTuple):
    """The model; None: as recorded."""

    ties: TieModel | None = None
    anchor: str | None = None

    def parameters(self, recorded: Mapping[str, object]) -> BradleyTerryParameters:
        """Return the recorded parameters, overridden by the chosen ones.

        Raises:
            ConfigurationError: An option is out of range.
        """
        anchored = {} if self.anchor is None else _anchor(self.anchor)
        return bradley_terry_parameters(recorded, {**self._asdict(), **anchored})


class TableKind(NamedTuple):
    """The options that each choose another kind of table; at most one is given."""

    overall_by: str | None = None  # weights of dimensions
    control: str | None = None  # style features
    with_set: str | None = None
    truth: str | None = None
    fit_temperature: str | None = None

    def require_consistent(self, soft: "SoftOptions", name: str | None) -> None:
        """Refuse several kinds, and options for imported battles without any.

        Raises:
            ConfigurationError: They are given.
        """
        others = (self.overall_by, self.control, self.with_set)
        if sum(value is not None for value in (*others, name)) > 1:
            raise ConfigurationError(["choose one of --overall, --control, --with, --name"])
        if self.truth is not None and any(value is not None for value in others):
            raise ConfigurationError(["--truth works with none of --overall, --control, --with"])
        for option, value in (("--prefs", soft.prefs), ("--made-at", soft.made_at)):
            if value is not None and self.with_set is None and name is None:
                raise ConfigurationError([f"{option} needs imported battles: add --name or --with"])


class PairOptions(NamedTuple):
    """Whether to compare all pairs, and how chances are adjusted for their number."""

    pairs: bool = False
    adjust: Adjustment | None = None

    @property
    def adjustment(self) -> Adjustment | None:
        """The adjustment of pairs; None: ratings are shown.

        Raises:
            ConfigurationError: There is an adjustment without pairs.
        """
        if self.adjust is not None and not self.pairs:
            raise ConfigurationError(["--adjust needs --pairs"])
        return self.adjust or ("max-t" if self.pairs else None)


def weights_of(text: str, known: Collection[str]) -> dict[str, float]:
    """Parse --overall: the weight of each dimension.

    Raises:
        ConfigurationError: A weight is missing or too large, or a dimension is unknown.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        dimension, _, number = part.strip().rpartition("=")
        weight = _number(number)
        if weight is None:
            raise ConfigurationError([f"--overall {text!r}: write it as factuality=2,utility=1"])
        if weight > _MAX_WEIGHT:
            raise ConfigurationError(
                [f"--overall {text!r}: a weight may be at most {_MAX_WEIGHT:,.0f}"]
            )
        weights[_one_of("--overall", dimension, known)] = weight
    return weights


def features_of(text: str) -> tuple[str, ...]:
    """Parse --control: the style features.

    Raises:
        ConfigurationError: There is no such feature.
    """
    if text == STYLE:
        return FEATURES
    known = (*FEATURES, STYLE)
    return tuple(_one_of("--control", part.strip(), known) for part in text.split(","))


def _anchor(text: str) -> dict[str, object]:
    """Parse ENTRANT[=RATING]; if the part after = is not a number, it belongs to the name."""
    name, _, number = text.rpartition("=")
    rating = _number(number)
    if not name or rating is None:
        return {"anchor": text}
    if abs(rating) > MAX_POINTS:
        limits = f"-{MAX_POINTS:,.0f} and {MAX_POINTS:,.0f}"
        raise ConfigurationError([f"--anchor {text!r}: a rating must be between {limits}"])
    return {"anchor": name, "anchor_rating": rating}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _one_of(option: str, name: str, known: Collection[str]) -> str:
    if name in known:
        return name
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    raise ConfigurationError([f"{option}: {name!r} is not known; {hint}"])


Prefs: TypeAlias = Literal["soft", "hard"]


class SoftOptions(NamedTuple):
    """Whether preferences count, or only who won; a temperature turns scores into soft scores."""

    prefs: Prefs | None = None
    temperature: float | None = None
    made_at: float | None = None

    @property
    def is_soft(self) -> bool:
        """Return whether imported preferences count, not only who won."""
        return self.prefs == "soft"

    def settled(self, ties: TieModel) -> "SoftOptions":
        """Return the options with none left open; Davidson's model of ties needs whole outcomes.

        Raises:
            ConfigurationError: The options contradict each other, or are out of range.
        """
        chosen: Prefs = self.prefs or ("soft" if ties == "half" else "hard")
        if chosen == "soft" and ties != "half":
            raise ConfigurationError(
                ["--prefs soft cannot be combined with --ties davidson, which needs who won"]
            )
        if self.temperature is not None and chosen == "hard":
            raise ConfigurationError(
                ["--temperature makes soft scores: leave out --ties davidson and --prefs hard"]
            )
        if self.made_at is not None and self.temperature is None:
            raise ConfigurationError(["--made-at needs --temperature"])
        require_temperature("--temperature", self.temperature)
        require_temperature("--made-at", self.made_at)
        if self.temperature is None or self.made_at is not None:
            return self._replace(prefs=chosen)
        return self._replace(prefs=chosen, made_at=TEMPERATURE)

    def applied_to(self, battles: BattlesOfSet) -> BattlesOfSet:
        """Return battles with their preferences at the temperature."""
        if self.temperature is None or self.made_at is None:
            return battles
        return battles.at_temperature(self.temperature, made_at=self.made_at)


def require_temperature(option: str, temperature: float | None) -> None:
    """Refuse a temperature that is not positive and finite.

    Raises:
        ConfigurationError: It is not.
    """
    if temperature is not None and not 0 < temperature < inf:
        raise ConfigurationError([f"{option} {temperature:g}: a temperature must be above 0"])
