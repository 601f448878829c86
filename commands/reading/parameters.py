"""Rating parameters: the recorded settings, overridden by what the caller chose."""

import json
from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from commands.errors import ConfigurationError, Spelling, as_option, place_and_fault
from ledger.events.ratings import BradleyTerryParameters, EloParameters
from projections.intervals import too_few_resamples
from projections.ratings.elo.uncertainty import BOOTSTRAPS, LEVEL
from projections.tournament.state import Tournament

Parameters = TypeVar("Parameters")


def settings_of(state: Tournament, section: str) -> Mapping[str, object]:
    """Return a section of the settings as a tournament recorded it; empty if it did not.

    Raises:
        ConfigurationError: They were redacted.
    """
    configured = json.loads(state.opening.configuration) if state.opening else {}
    if "redacted" in configured:
        raise ConfigurationError(
            [f"the settings that {state.stream!r} had then were redacted; read a later position"]
        )
    values: Mapping[str, object] = configured.get(section, {})
    return values


def elo_parameters(
    settings: Mapping[str, object], chosen: Mapping[str, object], spelling: Spelling = as_option
) -> EloParameters:
    """Return the recorded Elo parameters, overridden by the chosen ones.

    tournament.toml is not read, so everybody who reads the ledger gets the same numbers. If no
    number of resamples is recorded, the default holds. Further values of K must be chosen.

    Raises:
        ConfigurationError: A value is out of range, or asks for too few resamples.
    """
    recorded = {"bootstraps": BOOTSTRAPS, **settings, "k_sweep": ()}
    parameters = _overridden(EloParameters, recorded, chosen, spelling)
    if parameters.bootstraps and chosen.get("bootstraps") is not None:
        _require_resamples(spelling("bootstraps"), parameters.bootstraps, LEVEL)
    return parameters


def bradley_terry_parameters(
    recorded: Mapping[str, object], chosen: Mapping[str, object], spelling: Spelling = as_option
) -> BradleyTerryParameters:
    """Return the recorded Bradley-Terry parameters, overridden by the chosen ones.

    Raises:
        ConfigurationError: A value is out of range, or the resamples are too few for the level.
    """
    parameters = _overridden(BradleyTerryParameters, recorded, chosen, spelling)
    is_chosen = any(chosen.get(name) is not None for name in ("interval", "level", "resamples"))
    if parameters.interval != "sandwich" and is_chosen:
        _require_resamples(spelling("resamples"), parameters.resamples, parameters.level)
    return parameters


def require_anchor(parameters: BradleyTerryParameters, roster: Collection[str]) -> None:
    """Require that the anchor is an entrant.

    Raises:
        ConfigurationError: It is not.
    """
    if parameters.anchor not in {None, *roster}:
        entrants = ", ".join(roster)
        raise ConfigurationError(
            [f"the anchor {parameters.anchor!r} is not an entrant; known: {entrants}"]
        )


def _overridden(
    kind: type[Parameters],
    settings: Mapping[str, object],
    overrides: Mapping[str, object],
    spelling: Spelling,
) -> Parameters:
    """Return settings as a structure, overridden by the chosen values; None: not chosen."""
    chosen = {name: value for name, value in overrides.items() if value is not None}
    try:
        return msgspec.convert({**settings, **chosen}, kind)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        value = f" {chosen[place]}" if place in chosen else ""
        raise ConfigurationError([f"{spelling(place)}{value}: {why}"]) from error


def _require_resamples(option: str, resamples: int, level: float) -> None:
    if why := too_few_resamples(resamples, level):
        raise ConfigurationError([f"{option} {resamples}: {why}"])
