"""Where a tournament is kept: all of tournament.toml that a command needs which only reads.

Reading goes on while other sections are being edited, and does not wait for their checks.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from commands.errors import ConfigurationError
from commands.toml_file import parse, read_text, value, variable
from commands.toml_lines import line_of
from commands.validation import place_and_fault


class Kept(msgspec.Struct, frozen=True):
    """A tournament's name, and its ledger relative to the settings file."""

    id: str
    ledger: str = "tournament.db"
    network_ledger: bool = False


def where_kept(path: Path, environ: Mapping[str, str]) -> Kept:
    """Read the section that says where a tournament is kept.

    Raises:
        ConfigurationError: The file cannot be read, or the section is not as it must be.
    """
    text = read_text(path)
    section = parse(path, text).get("tournament", {})
    if not isinstance(section, dict):
        fault = f"{path}:{line_of(text, ('tournament',))}: 'tournament' is a table: [tournament]"
        raise ConfigurationError([fault])
    section = dict(section)
    for field in msgspec.structs.fields(Kept):
        overruling = environ.get(variable(("tournament", field.name)))
        if overruling is not None:
            section[field.name] = overruling if field.type is str else value(overruling)
    try:
        return msgspec.convert(section, Kept, strict=False)
    except msgspec.ValidationError as error:
        name, why = place_and_fault(error)
        line = line_of(text, ("tournament", name) if name else ("tournament",))
        place = f"'tournament.{name}'" if name else "[tournament]"
        raise ConfigurationError([f"{path}:{line}: {place}: {why}"]) from error
