"""docs/configuration.md: every section and key of tournament.toml, from the settings' schema."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from commands.settings.schema import Settings
from commands.settings.sections import LOADERS, EntrantSection, Prompting
from commands.settings.toml import variable

Schema: TypeAlias = Mapping[str, Any]  # a part of a JSON schema

_HEAD: Final = """\
# Configuration

This page is made by `make docs` from the schema that checks `tournament.toml`.

- Relative paths start from the folder of `tournament.toml`; `~` is your home folder.
- An unknown key is an error. All errors are reported at once, each with its line. An editor that
  knows JSON Schema, such as VS Code with Even Better TOML, marks them while you type, by the line
  `#:schema` that `tourney init` writes, with `tournament.schema.json` beside it.
- A key of a section that is not repeated, such as `[elo]`, can be set by an environment variable:
  `TOURNEY_ELO_K=32 tourney run` sets `k` of `[elo]`. A misspelt variable is an error, too.
- `TOURNEY_NETWORK_LEDGER=true` allows a ledger on a network file system, and `TOURNEY_ENGINE=ray`
  sets `--engine`. They are matters of a machine, so they are no keys.
- Precedence: a command's option, then the environment variable, then the file, then the default.
- The commands that work on the tournament read the settings and these variables: `run`, `plan`,
  `apply`, `batch`, `doctor` and `import responses`. All others read the ledger, which
  holds the settings as recorded. Of the settings they need only where the ledger is, the
  tournament's name and the price table: `TOURNEY_LEDGER`, those of `[tournament]`, and
  `TOURNEY_JUDGE_PRICES`.
- Editing `tournament.toml` changes nothing until the next `run` or `apply`. To try a value now,
  pass it as an option: `tourney project elo --k 32`. There `TOURNEY_ELO_K` changes nothing, and
  a line says so.
"""
_LIMITS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
_PLAIN: Final = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "object": "table",
}


def configuration_page() -> str:
    """Write the page."""
    whole = Settings.model_json_schema()
    kinds: Schema = whole["$defs"]
    sections = (
        text for key, section in whole["properties"].items() for text in _told(key, section, kinds)
    )
    return "\n".join((_HEAD, *sections))


def _told(key: str, section: Schema, kinds: Schema) -> Iterator[str]:
    """Yield the text of each table that goes by a key."""
    if "$ref" in section:
        title = f"[{key}]" + (" and [[jury]]" if key == "judge" else "")
        yield _section(title, kinds[_name(section)])
    elif key == "entrants":
        yield from _entrants()
    elif key != "jury":
        yield _section(f"[[{key}]]", kinds[_name(section["items"])])


def _entrants() -> Iterator[str]:
    """Yield what all entrants have, what most have, and what those of each loader have."""
    shared = {*EntrantSection.model_fields, *Prompting.model_fields} - {"loader"}
    yield _section("[[entrants]]", _schema_of(EntrantSection), without={"loader"})
    prompted = (
        name
        for name, kind in LOADERS.items()
        if Prompting.model_fields.keys() <= kind.model_fields.keys()
    )
    loaders = " or ".join(f'"{name}"' for name in prompted)
    yield _section(f"[[entrants]], loader = {loaders}", _schema_of(Prompting))
    for name, kind in LOADERS.items():
        yield _section(f'[[entrants]], loader = "{name}"', _schema_of(kind), without=shared)


def _schema_of(kind: type[BaseModel]) -> Schema:
    schema: Schema = kind.model_json_schema()
    return schema


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _section(title: str, kind: Schema, without: Collection[str] = ()) -> str:
    required: Sequence[str] = kind.get("required", ())
    rows = (
        f"| `{key}` | {_type(field)} | {_default(field, is_required=key in required)}"
        f" | {' '.join(field['description'].split())} |"
        for key, field in kind["properties"].items()
        if key not in without
    )
    is_plain = not title.startswith("[[")
    example = variable((title.partition("]")[0].strip("["), next(iter(kind["properties"]))))
    note = f"\nEnvironment: `{example}` and so on.\n" if is_plain else ""
    table = "\n".join(("| key | type | default | meaning |", "|---|---|---|---|", *rows))
    return f"## {title}\n\n{kind['description']}\n{note}\n{table}\n"


def _type(field: Schema) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"] if each != {"type": "null"})
    if "const" in field:
        return _literal(field["const"])
    if "enum" in field:
        return "one of " + ", ".join(map(_literal, field["enum"]))
    if field.get("type") == "array":
        return f"list: {_type(field['items'])}"
    if field.get("format") == "path":
        return "path"
    limits = (f"{says} {field[name]:,.10g}" for name, says in _LIMITS.items() if name in field)
    return ", ".join((_PLAIN[field["type"]], *limits))


def _default(field: Schema, *, is_required: bool) -> str:
    if is_required:
        return "required"
    value = field.get("default")
    return "none" if value in (None, "", [], {}) else _literal(value)


def _literal(value: object) -> str:
    return f"`{json.dumps(value)}`"
