"""From options to how Bradley-Terry ratings are computed."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import inf, isfinite
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import typer

from commands.errors import ConfigurationError
from commands.runs.parameters import bradley_terry_parameters
from ledger.events.ratings import BradleyTerryParameters, IntervalKind, IntervalUnit, TieModel
from ledger.events.values import MAX_POINTS
from ledger.identity import Json
from projections.battles.soft_scores import TEMPERATURE
from projections.ratings.tournament import FEATURES

STYLE = "style"
_MAX_WEIGHT: Final = 1e6  # of a dimension: only ratios count, and no sum overflows

TiesOption: TypeAlias = Annotated[
    TieModel | None,
    typer.Option("--ties", help="half: half a win for each; davidson: an outcome of its own."),
]
AnchorOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--anchor", metavar="ENTRANT[=RATING]", help="Who is at a rating; without it the mean is."
    ),
]
PriorOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--prior-sd", help="Standard deviation, in Elo points, that strengths have."),
]
IntervalOption: TypeAlias = Annotated[
    IntervalKind | None, typer.Option("--interval", help="What intervals are calculated by.")
]
UnitOption: TypeAlias = Annotated[
    IntervalUnit | None,
    typer.Option("--unit", help="One piece of evidence: a prompt with all its battles, or one."),
]
LevelOption: TypeAlias = Annotated[
    float | None, typer.Option("--level", help="Of intervals, as 0.95.")
]
ResamplesOption: TypeAlias = Annotated[
    int | None, typer.Option("--resamples", help="Of bayesian and multinomial intervals.")
]
SeedOption: TypeAlias = Annotated[int | None, typer.Option("--seed", help="Of the resamples.")]
OverallOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--overall", metavar="WEIGHTS", help="Over dimensions, as factuality=2,utility=1."
    ),
]
ControlOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--control", help="As if all wrote alike: style, or some of length,headers,lists,bold."
    ),
]
AmongOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--with", metavar="NAME", help="Together with a set of imported battles."),
]
NameOption: TypeAlias = Annotated[
    str | None, typer.Option("--name", help="A set of imported battles, and no tournament's.")
]


def bt_parameters(
    recorded: Mapping[str, object], chosen: Mapping[str, object], anchor: str | None
) -> BradleyTerryParameters:
    """Return recorded settings with what was chosen in their place.

    Raises:
        ConfigurationError: An option is out of range, or too few resamples for a level were chosen.
    """
    hung = {} if anchor is None else _anchor(anchor)
    return bradley_terry_parameters(recorded, {**chosen, **hung})


def weights_of(text: str, known: Collection[str]) -> dict[str, float]:
    """Return the weights of dimensions that --overall states.

    Raises:
        ConfigurationError: It states none, or of a dimension that is not there.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        dimension, _, number = part.strip().rpartition("=")
        weight = _number(number)
        if weight is None:
            raise ConfigurationError([f"--overall {text!r}: write it as factuality=2,utility=1"])
        if weight > _MAX_WEIGHT:
            raise ConfigurationError([f"--overall {text!r}: weights are up to {_MAX_WEIGHT:,.0f}"])
        weights[_one_of("--overall", dimension, known)] = weight
    return weights


def features_of(text: str) -> tuple[str, ...]:
    """Return the features of style that --control names.

    Raises:
        ConfigurationError: There is no such feature.
    """
    if text == STYLE:
        return FEATURES
    known = (*FEATURES, STYLE)
    return tuple(_one_of("--control", part.strip(), known) for part in text.split(","))


def _anchor(text: str) -> dict[str, object]:
    """Divide ENTRANT[=RATING]; what stands behind a = and is no number belongs to the name."""
    name, _, number = text.rpartition("=")
    rating = _number(number)
    if not name or rating is None:
        return {"anchor": text}
    if abs(rating) > MAX_POINTS:
        raise ConfigurationError([f"--anchor {text!r}: ratings are within {MAX_POINTS:,.0f} of 0"])
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
PrefsOption: TypeAlias = Annotated[
    Prefs | None,
    typer.Option("--prefs", help="Imported preferences count as such, or hard: only who won."),
]
TemperatureOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--temperature", help="How steeply a judge's marks are read, as soft scores."),
]
MadeAtOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--made-at",
        help=f"The temperature that imported preferences were made at; {TEMPERATURE} if not said.",
    ),
]


class Softness(NamedTuple):
    """How what is no plain win is read.

    prefs: whether imported preferences count as such; temperature: of a judge's marks, None where
    preferences stay as they were made; made_at: the temperature that they were made at.
    """

    prefs: Prefs
    temperature: float | None
    made_at: float = TEMPERATURE

    @property
    def is_soft(self) -> bool:
        """Say whether imported preferences count as such."""
        return self.prefs == "soft"

    @property
    def facts(self) -> dict[str, Json]:
        """What JSON says of it beside ratings of imported battles."""
        return {**self._asdict(), "made_at": None if self.temperature is None else self.made_at}


def softness_of(
    prefs: Prefs | None, temperature: float | None, made_at: float | None, *, ties: TieModel
) -> Softness:
    """Return how marks and preferences are read; ties by Davidson know whole outcomes only.

    Raises:
        ConfigurationError: The options contradict each other, or are out of range.
    """
    chosen: Prefs = prefs or ("soft" if ties == "half" else "hard")
    if chosen == "soft" and ties != "half":
        raise ConfigurationError(["--prefs soft: --ties davidson knows whole outcomes only"])
    if temperature is not None and chosen == "hard":
        raise ConfigurationError(
            ["--temperature is of what is soft: ties as half, no --prefs hard"]
        )
    if made_at is not None and temperature is None:
        raise ConfigurationError(["--made-at is of preferences read anew: add --temperature"])
    for option, value in (("--temperature", temperature), ("--made-at", made_at)):
        require_steep(option, value)
    return Softness(chosen, temperature, TEMPERATURE if made_at is None else made_at)


def require_steep(option: str, temperature: float | None) -> None:
    """Refuse what is no temperature that marks can be read at.

    Raises:
        ConfigurationError: It is none.
    """
    if temperature is not None and not 0 < temperature < inf:
        raise ConfigurationError([f"{option} {temperature:g}: a temperature is above 0"])
