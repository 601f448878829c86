"""Environment variables that override keys of the settings, and the one that is of the machine."""

import tomllib
from typing import Final, Literal, TypeAlias

from commands.settings.toml import Location, parsed

EngineName: TypeAlias = Literal["local", "ray"]
"""What runs entrants' weights: this machine, or the accelerators that Ray knows."""

ENGINE: Final = "TOURNEY_ENGINE"
"""Sets `--engine`. It is no key of the settings: these are recorded, and a machine is not."""


def variable(location: Location) -> str:
    """Name the environment variable that overrides a key."""
    return "_".join(("TOURNEY", *map(str, location[:2]))).upper()


def value(text: str) -> object:
    """Parse an environment value as TOML; what is not TOML is a plain string."""
    try:
        return parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
