"""Read TOML, and tell people where a key is: its line, its name, and which keys are near it."""

import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from commands.errors import ConfigurationError

Location: TypeAlias = tuple[int | str, ...]
"""A section, the number of the table if it is an array of tables, and the key."""

EngineName: TypeAlias = Literal["local", "ray"]
"""What runs entrants' weights: this machine, or the accelerators that Ray knows."""

ENGINE: Final = "TOURNEY_ENGINE"
"""Sets `--engine`. It is no key of the settings: these are recorded, and a machine is not."""

NETWORK_LEDGER: Final = "TOURNEY_NETWORK_LEDGER"
"""Allows a ledger on a file system that is not local, or not known. It is no key, likewise."""

LEDGER: Final = "tournament.db"
"""The ledger's file, if [tournament] names none."""

_LONG_TEXT: Final = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'', re.DOTALL)


def from_home(path: Path) -> Path:
    """Read a leading `~` as the user's home folder, as shells do."""
    try:
        return path.expanduser()
    except RuntimeError:  # there is no user of that name
        return path


def line_of(text: str, location: Location) -> int:
    """Return the line of a key, from 1; without the key its table's line; else 1."""
    lines = _LONG_TEXT.sub(lambda long: "\n" * long[0].count("\n"), text).split("\n")
    names = [part for part in location if isinstance(part, str)]
    nth = next((part for part in location[1:2] if isinstance(part, int)), 0)
    for depth in range(len(names), 0, -1):  # a table inside a table may have a header of its own
        table = _nth_table(lines, names[:depth], nth)
        if table is not None:
            inside = [_line_of_key(lines, name, table) for name in names[depth : depth + 1]]
            return next(filter(None, inside), table.start + 1)
    return _line_of_key(lines, names[0], range(len(lines))) or 1


def _nth_table(lines: Sequence[str], names: Sequence[str], nth: int) -> range | None:
    """Return the lines of the nth table under a header, the header included."""
    dotted = r"\s*\.\s*".join(re.escape(name) for name in names)
    header = re.compile(rf"\s*\[\[?\s*{dotted}\s*\]\]?")
    starts = [n for n, line in enumerate(lines) if header.match(line)]
    if nth >= len(starts):
        return None
    start = starts[nth]
    following = (n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("["))
    return range(start, next(following, len(lines)))


def _line_of_key(lines: Sequence[str], key: str, among: range) -> int | None:
    name = re.escape(key)
    pattern = re.compile(rf"\s*(?:\"{name}\"|'{name}'|{name})\s*=")
    return next((n + 1 for n in among if pattern.match(lines[n])), None)


Table: TypeAlias = dict[str, Any]  # what tomllib yields


def owner_and_name(document: Table, location: Location) -> tuple[str, str]:
    """Return what a key belongs to, as a message begins with it, and the key's dotted name.

    A table of an array is called by its id or dimension, as "[[entrants]] 'base': ", else by its
    number, as "[[entrants]] 3: ". Any other section is part of the name. People count from 1.
    """
    match location:
        case (str(section), int(n), _, *_):
            table = document[section][n]
            labels = (
                [table.get(key) for key in ("id", "dimension")] if isinstance(table, dict) else []
            )
            label = next((repr(name) for name in labels if isinstance(name, str)), str(n + 1))
            return f"[[{section}]] {label}: ", _dotted(location[2:])
        case _:
            return "", _dotted(location)


def _dotted(location: Location) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in location)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the nearest known one, else all of them."""
    known = list(known)
    close = closest(name, known)
    return f"; did you mean {close!r}?" if close else f"; known here: {', '.join(known)}"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one is probably meant to be; None: none is close."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)


def parsed(text: str) -> Table:
    """Return what a text says as TOML.

    Raises:
        TOMLDecodeError: It is not TOML, or more than any settings say.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError("a number has too many digits") from error


def no_utf8(error: UnicodeDecodeError) -> str:
    """Say what is wrong with a file whose bytes are no UTF-8, and what to do."""
    is_utf16 = error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return UTF16 if is_utf16 else f"cannot be read: {error}; save it as UTF-8"


def looks_utf16(text: str) -> bool:
    """Say whether a text was written as UTF-16 without a mark: each second character is NUL."""
    return text[:2].count("\0") == 1


UTF16: Final = "cannot be read: it is UTF-16; save it as UTF-8"


def read_toml(path: Path) -> tuple[str, Table]:
    """Return the text of a file, and what it says as TOML.

    Raises:
        ConfigurationError: It is missing, cannot be read, or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin with a mark
        if looks_utf16(text):
            raise ConfigurationError([f"{path}: {UTF16}"])
        return text, parsed(text)
    except FileNotFoundError as error:
        remedy = "name one with --config, or make one with `tourney init`"
        raise ConfigurationError([f"{path}: there is no such file; {remedy}"]) from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{line[1]}" if line else path
        raise ConfigurationError([f"{place}: not TOML: {error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError([f"{path}: {no_utf8(error)}"]) from error
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def variable(location: Location) -> str:
    """Name the environment variable that overrides a key."""
    return "_".join(("TOURNEY", *map(str, location[:2]))).upper()


def value(text: str) -> object:
    """Parse an environment value as TOML; what is not TOML is a plain string."""
    try:
        return parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class TournamentLocation(NamedTuple):
    """A tournament's name and its ledger."""

    id: str
    ledger: Path


def tournament_location(path: Path, environ: Mapping[str, str]) -> TournamentLocation:
    """Read only [tournament]: all that a command needs that only reads, without the schema.

    Faults elsewhere in the file do not stop it.

    Raises:
        ConfigurationError: The file cannot be read, or [tournament] is wrong.
    """
    text, document = read_toml(path)
    section = document.get("tournament", {})
    if not isinstance(section, dict):
        fault = "'tournament' must be a table: [tournament]"
        raise ConfigurationError([f"{path}:{line_of(text, ('tournament',))}: {fault}"])
    found = {"ledger": LEDGER, **section}
    for key in ("id", "ledger"):
        location = ("tournament", key)
        found[key] = environ.get(variable(location), found.get(key))
        if not isinstance(found[key], str):
            why = "is missing" if found[key] is None else "must be a text"
            fault = f"'tournament.{key}' {why}"
            raise ConfigurationError([f"{path}:{line_of(text, location)}: {fault}"])
    return TournamentLocation(found["id"], path.parent / from_home(Path(found["ledger"])))


def allows_network(environ: Mapping[str, str]) -> bool:
    """Say whether a ledger on a network may be written on this machine."""
    return environ.get(NETWORK_LEDGER, "").lower() in {"true", "1"}
