"""Look up single keys of tournament.toml: enough for read-only commands.

They look for the ledger's place or the judges' keys. Faults in other sections
do not stop them, and no other section is checked.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from commands.errors import ConfigurationError, place_and_fault
from commands.settings.environment import value, variable
from commands.settings.keys import OPENAI_KEY, key_variables
from commands.settings.toml import Location, line_of, read_toml

JUDGE: Final = "[judge]"
"""The table of the default judge."""

_Part = TypeVar("_Part", bound=msgspec.Struct)


class TournamentLocation(msgspec.Struct, frozen=True):
    """A tournament's name and its ledger, as [tournament] says; paths as written there."""

    id: str
    ledger: str = "tournament.db"
    network_ledger: bool = False


class _Judge(msgspec.Struct, frozen=True):
    provider: str = "reference"
    api_key_env: str = OPENAI_KEY

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables of which one must hold a key; empty: none is needed for certain."""
        return key_variables(self.provider, self.api_key_env)


class _Juror(_Judge, frozen=True):
    id: str = ""


class _Judged(msgspec.Struct, frozen=True):
    jury: tuple[_Juror, ...] = ()


def tournament_location(path: Path, environ: Mapping[str, str]) -> TournamentLocation:
    """Read only [tournament]: enough for read-only commands.

    Raises:
        ConfigurationError: The file cannot be read, or [tournament] is wrong.
    """
    return _Sections(path).table("tournament", TournamentLocation, environ)


def judge_keys(path: Path, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the variables of each judge's key by the table that names it, [judge] first.

    Raises:
        ConfigurationError: The file cannot be read, or a provider is not a text.
    """
    sections = _Sections(path)
    judge = sections.table("judge", _Judge, environ)
    jury = sections.whole(_Judged).jury
    return {JUDGE: judge.keys, **{f"[[jury]] {each.id!r}": each.keys for each in jury}}


class _Sections:
    """A settings file; only the keys that are looked up are checked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text, self._document = read_toml(path)

    def table(self, name: str, kind: type[_Part], environ: Mapping[str, str]) -> _Part:
        """Return a section; environment variables override its keys."""
        said = self._document.get(name, {})
        if not isinstance(said, dict):
            raise self._fault((name,), f"{name!r} must be a table: [{name}]")
        return self._converted({**said, **_from_environment(name, kind, environ)}, kind, name)

    def whole(self, kind: type[_Part]) -> _Part:
        """Return several sections at once, arrays of tables included."""
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


def _from_environment(
    section: str, kind: type[msgspec.Struct], environ: Mapping[str, str]
) -> dict[str, object]:
    """Return the keys of a section that environment variables set."""
    said = {}
    for field in msgspec.structs.fields(kind):
        text = environ.get(variable((section, field.name)))
        if text is not None:
            said[field.name] = value(text) if field.type is bool else text
    return said
