"""A TOML file of settings, and the environment variables that overrule its keys."""

import tomllib
from pathlib import Path
from typing import Any, TypeAlias

from commands.errors import ConfigurationError
from commands.toml_lines import Location

Table: TypeAlias = dict[str, Any]  # what tomllib yields


def read_text(path: Path) -> str:
    """Return what a settings file says.

    Raises:
        ConfigurationError: It is missing, or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        remedy = "name one with --config, or lay out an example with `tourney demo`"
        raise ConfigurationError([f"{path}: there is no such file; {remedy}"]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def parse(path: Path, text: str) -> Table:
    """Return a file's text as tables.

    Raises:
        ConfigurationError: It is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([f"{path}: not TOML: {error}"]) from error


def variable(location: Location) -> str:
    """Name the environment variable that overrules a key."""
    return "_".join(("TOURNEY", *map(str, location[:2]))).upper()


def value(text: str) -> object:
    """Read an environment value as TOML would; what is no TOML value is a plain string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
