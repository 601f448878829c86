"""Look up single keys of tournament.toml: enough for read-only commands.

They look for the ledger's place, the price table or the servers. Faults in other sections do not
stop them, and no other section is checked.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from commands.errors import ConfigurationError, place_and_fault
from commands.settings.api_keys import OPENAI_KEY
from commands.settings.servers import (
    BASE_URL,
    DEFAULT_MODEL,
    JUDGE,
    Server,
    entrant_table,
    juror_table,
    not_an_address,
    server_of,
)
from commands.settings.toml import (
    Location,
    from_home,
    line_of,
    owner_and_name,
    read_toml,
    value,
    variable,
)
from ledger.identity import Dimension

_Part = TypeVar("_Part", bound=msgspec.Struct)


class TournamentLocation(msgspec.Struct, frozen=True):
    """A tournament's name and its ledger, as [tournament] says; paths as written there."""

    id: str
    ledger: str = "tournament.db"
    network_ledger: bool = False


class _Priced(msgspec.Struct, frozen=True):
    prices: str | None = None


class _Capped(msgspec.Struct, frozen=True):
    max_usd: float | None = None


class _Juror(msgspec.Struct, frozen=True):
    id: str = ""
    provider: str = "reference"
    model: str | None = None
    base_url: Annotated[str, msgspec.Meta(pattern=BASE_URL)] | None = None
    api_key_env: str = OPENAI_KEY

    def server(self, table: str, *models: str | None) -> Server | None:
        """Return where it is asked; None: on this machine."""
        return server_of(table, self.provider, models, self.base_url, self.api_key_env)


class _Judge(_Juror, frozen=True):
    pilot_model: str | None = None


class _Entrant(_Juror, frozen=True):
    loader: str = "hf"


class _Prompts(msgspec.Struct, frozen=True):
    bank: str = "bank.jsonl"


class _Rubric(msgspec.Struct, frozen=True):
    dimension: str
    path: str


class _Tables(msgspec.Struct, frozen=True):
    jury: tuple[_Juror, ...] = ()
    entrants: tuple[_Entrant, ...] = ()


class _Judged(msgspec.Struct, frozen=True):
    rubrics: tuple[_Rubric, ...] = ()


def tournament_location(path: Path, environ: Mapping[str, str]) -> TournamentLocation:
    """Read only [tournament]: enough for read-only commands.

    Raises:
        ConfigurationError: The file cannot be read, or [tournament] is wrong.
    """
    return _Sections(path).table("tournament", TournamentLocation, environ)


def allows_network(environ: Mapping[str, str]) -> bool:
    """Whether a variable alone allows a ledger on a network, where no settings are read."""
    said = environ.get(variable(("tournament", "network_ledger")), "false")
    return said.lower() in {"true", "1"}


def price_file(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own price table; None: the settings name none.

    Raises:
        ConfigurationError: The file cannot be read, or the key is not a path.
    """
    named = _Sections(path).table("judge", _Priced, environ).prices
    return None if named is None else path.parent / from_home(Path(named))


def judging_cap(path: Path, environ: Mapping[str, str]) -> float | None:
    """Return the settings' cap on judging in dollars; None: there is none.

    Raises:
        ConfigurationError: The file cannot be read, or the cap is no number.
    """
    return _Sections(path).table("judge", _Capped, environ).max_usd


def bank_and_rubrics(
    path: Path, environ: Mapping[str, str]
) -> tuple[Path, Mapping[Dimension, Path]]:
    """Return the paths of the prompt bank, and of each dimension's rubric.

    Raises:
        ConfigurationError: The file cannot be read, or one of the keys is not a text.
    """
    sections = _Sections(path)
    named = sections.table("prompts", _Prompts, environ).bank
    rubrics = sections.whole(_Judged).rubrics
    return path.parent / from_home(Path(named)), {
        Dimension(each.dimension): path.parent / from_home(Path(each.path)) for each in rubrics
    }


def servers(path: Path, environ: Mapping[str, str]) -> tuple[Server, ...]:
    """Return the servers of the judge, the jury and the entrants, in this order.

    Raises:
        ConfigurationError: The file cannot be read, or one of their keys is not a text.
    """
    sections = _Sections(path)
    judge, tables = sections.table("judge", _Judge, environ), sections.whole(_Tables)
    found = (
        judge.server(JUDGE, judge.model or DEFAULT_MODEL, judge.pilot_model),
        *(each.server(juror_table(each.id), each.model) for each in tables.jury),
        *(
            server_of(
                entrant_table(each.id), each.loader, [each.model], each.base_url, each.api_key_env
            )
            for each in tables.entrants
        ),
    )
    return tuple(server for server in found if server is not None)


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
            location = (*section, *(int(key) if key.isdecimal() else key for key in keys))
            owner, name = owner_and_name(self._document, location)
            if location[-1] == "base_url":
                why = not_an_address()
            named = f"{owner}{name!r}" if keys else f"[{'.'.join(section)}]"
            raise self._fault(location, f"{named}: {why}") from error

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
