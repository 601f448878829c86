"""Environment variables that override keys of the settings."""

import tomllib

from commands.settings.toml import Location, parsed


def variable(location: Location) -> str:
    """Name the environment variable that overrides a key."""
    return "_".join(("TOURNEY", *map(str, location[:2]))).upper()


def value(text: str) -> object:
    """Parse an environment value as TOML; what is not TOML is a plain string."""
    try:
        return parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
