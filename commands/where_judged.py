"""Who judges by the settings: all of tournament.toml that looking for keys needs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from commands.toml_file import read_part, variable

JUDGE: Final = "[judge]"
"""The table of the judge that is asked unless another one is named."""


class _Judge(msgspec.Struct, frozen=True):
    provider: str = "reference"


class _Juror(_Judge, frozen=True):
    id: str = ""


class _Judged(msgspec.Struct, frozen=True):
    judge: _Judge = _Judge()
    jury: tuple[_Juror, ...] = ()


def providers(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return each judge's provider by the table that names it, [judge] first.

    Raises:
        ConfigurationError: The settings cannot be read, or a provider is no text.
    """
    said = read_part(path, _Judged)
    judge = environ.get(variable(("judge", "provider")), said.judge.provider)
    return {JUDGE: judge, **{f"[[jury]] {each.id!r}": each.provider for each in said.jury}}
