"""Look up what a reading command needs of tournament.toml: where the ledger is, prices, judges.

Reading goes on while other sections are being edited, and does not wait for the checks of all.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from commands.errors import ConfigurationError, place_and_fault
from commands.settings.toml import Location, line_of, parse, read_text, value, variable

JUDGE: Final = "[judge]"
"""The table of the judge that is asked unless another one is named."""

_Part = TypeVar("_Part", bound=msgspec.Struct)


class TournamentLocation(msgspec.Struct, frozen=True):
    """A tournament's name, and its ledger relative to the settings file."""

    id: str
    ledger: str = "tournament.db"
    network_ledger: bool = False


class _Priced(msgspec.Struct, frozen=True):
    prices: str | None = None


class _Judge(msgspec.Struct, frozen=True):
    provider: str = "reference"


class _Juror(_Judge, frozen=True):
    id: str = ""


class _Judged(msgspec.Struct, frozen=True):
    jury: tuple[_Juror, ...] = ()


def tournament_location(path: Path, environ: Mapping[str, str]) -> TournamentLocation:
    """Return where a tournament is kept.

    Raises:
        ConfigurationError: The file cannot be read, or [tournament] is not as it must be.
    """
    return _Sections(path).table("tournament", TournamentLocation, environ)


def price_file(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the user's own price table; None: the settings name none.

    Raises:
        ConfigurationError: The file cannot be read, or names no file.
    """
    named = _Sections(path).table("judge", _Priced, environ).prices
    return None if named is None else path.parent / named


def judge_providers(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return each judge's provider by the table that names it, [judge] first.

    Raises:
        ConfigurationError: The file cannot be read, or a provider is no text.
    """
    sections = _Sections(path)
    judge = sections.table("judge", _Judge, environ)
    jury = sections.whole(_Judged).jury
    return {JUDGE: judge.provider, **{f"[[jury]] {each.id!r}": each.provider for each in jury}}


class _Sections:
    """A settings file, of which only the keys are checked that are asked for."""

    def __init__(self, path: Path) -> None:
        self._path, self._text = path, read_text(path)
        self._document = parse(path, self._text)

    def table(self, name: str, kind: type[_Part], environ: Mapping[str, str]) -> _Part:
        """Return a section; the environment overrules it."""
        said = self._document.get(name, {})
        if not isinstance(said, dict):
            raise self._fault((name,), f"{name!r} is a table: [{name}]")
        return self._converted({**said, **_overruling(name, kind, environ)}, kind, name)

    def whole(self, kind: type[_Part]) -> _Part:
        """Return what the file says of some sections, be they of many tables."""
        return self._converted(self._document, kind)

    def _converted(self, said: object, kind: type[_Part], *section: str) -> _Part:
        try:
            return msgspec.convert(said, kind, strict=False)
        except msgspec.ValidationError as error:
            place, why = place_and_fault(error)
            keys = re.findall(r"[^.\[\]]+", place)
            name = f"{'.'.join((*section, *keys))!r}" if keys else f"[{'.'.join(section)}]"
            location = (*section, *(int(key) if key.isdecimal() else key for key in keys))
            raise self._fault(location, f"{name}: {why}") from error

    def _fault(self, location: Location, why: str) -> ConfigurationError:
        return ConfigurationError([f"{self._path}:{line_of(self._text, location)}: {why}"])


def _overruling(
    section: str, kind: type[msgspec.Struct], environ: Mapping[str, str]
) -> dict[str, object]:
    """Return what the environment says of a section's keys."""
    said = {}
    for field in msgspec.structs.fields(kind):
        text = environ.get(variable((section, field.name)))
        if text is not None:
            said[field.name] = value(text) if field.type is bool else text
    return said
