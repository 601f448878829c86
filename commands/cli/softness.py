"""From options to how marks and preferences are read, which say by how much one is better."""

from math import inf
from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer

from commands.errors import ConfigurationError
from ledger.events.ratings import TieModel
from ledger.identity import Json
from projections.battles.soft_scores import TEMPERATURE

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
