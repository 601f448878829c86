"""From options to how ratings are computed: by the recorded settings, but for what was chosen."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from commands.errors import ConfigurationError
from commands.validation import place_and_fault
from projections.intervals import shortage

Parameters = TypeVar("Parameters")


def overruled(
    kind: type[Parameters], settings: Mapping[str, object], *, by: Mapping[str, object]
) -> Parameters:
    """Return settings with what was chosen in their place; an option that is None was not.

    Raises:
        ConfigurationError: An option is out of range.
    """
    chosen = {name: value for name, value in by.items() if value is not None}
    try:
        return msgspec.convert({**settings, **chosen}, kind)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ConfigurationError([f"--{place.replace('_', '-')}: {why}"]) from error


def require_resamples(option: str, resamples: int, *, level: float) -> None:
    """Refuse an interval by too few resamples.

    Raises:
        ConfigurationError: They cannot tell its level.
    """
    if why := shortage(resamples, level):
        raise ConfigurationError([f"{option} {resamples}: {why}"])
