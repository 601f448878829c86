"""Which prices the settings name: all of tournament.toml that adding up what was spent needs."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from commands.toml_file import read_part, variable


class _Judge(msgspec.Struct, frozen=True):
    prices: str | None = None


class _Priced(msgspec.Struct, frozen=True):
    judge: _Judge = _Judge()


def own_prices(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the user's own price table; None: the settings name none.

    Raises:
        ConfigurationError: The settings cannot be read, or name no file.
    """
    said = read_part(path, _Priced).judge.prices
    named = environ.get(variable(("judge", "prices")), said)
    return None if named is None else path.parent / named
