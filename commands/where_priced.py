"""Which prices the settings name: all of tournament.toml that adding up what was spent needs."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from commands.errors import ConfigurationError
from commands.toml_file import parse, read_text, variable
from commands.validation import place_and_fault


class _Judge(msgspec.Struct, frozen=True):
    prices: str | None = None


class _Priced(msgspec.Struct, frozen=True):
    judge: _Judge = _Judge()


def own_prices(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the user's own price table; None: the settings name none.

    Raises:
        ConfigurationError: The settings cannot be read, or name no file.
    """
    document = parse(path, read_text(path))
    try:
        said = msgspec.convert(document, _Priced).judge.prices
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise ConfigurationError([f"{path}: {place}: {why}"]) from error
    named = environ.get(variable(("judge", "prices")), said)
    return None if named is None else path.parent / named
