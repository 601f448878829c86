"""docs/configuration.md: every section and key of tournament.toml, from the settings' schema."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from commands.settings.schema import Settings
from commands.settings.toml import variable

Schema: TypeAlias = Mapping[str, Any]  # a part of a JSON schema

_HEAD: Final = """\
# Configuration

This page is made by `make docs` from the schema that checks `tournament.toml`.

- Relative paths start from the folder of `tournament.toml`; `~` is your home folder.
- An unknown key is an error. All errors are reported at once, each with its line.
- A key of a section that is not repeated, such as `[elo]`, can be set by an environment variable:
  `TOURNEY_ELO_K=32 tourney run` sets `k` of `[elo]`. A misspelt variable is an error, too.
- Precedence: a command's option, then the environment variable, then the file, then the default.
- The commands that work on the tournament read the settings and these variables: `run`, `plan`,
  `apply`, `batch`, `prices`, `doctor` and `import responses`. All others read the ledger, which
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
        _section(title, kinds[name])
        for key, section in whole["properties"].items()
        for title, name in _tables(key, section, kinds)
    )
    return "\n".join((_HEAD, *sections))


def _tables(key: str, section: Schema, kinds: Schema) -> Iterator[tuple[str, str]]:
    """Yield the heading of each table that goes by a key, and the schema's name for it."""
    if "$ref" in section:
        yield f"[{key}]", _name(section)
        return
    items = section["items"]
    if "$ref" in items:
        yield f"[[{key}]]", _name(items)
        return
    for each in items["oneOf"]:
        loader = kinds[_name(each)]["properties"]["loader"]["const"]
        yield f'[[{key}]], loader = "{loader}"', _name(each)


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _section(title: str, kind: Schema) -> str:
    required: Sequence[str] = kind.get("required", ())
    rows = (
        f"| `{key}` | {_type(field)} | {_default(field, is_required=key in required)}"
        f" | {' '.join(field['description'].split())} |"
        for key, field in kind["properties"].items()
    )
    is_plain = not title.startswith("[[")
    example = variable((title.strip("[]"), next(iter(kind["properties"]))))
    note = f"\nEnvironment: `{example}` and so on.\n" if is_plain else ""
    table = "\n".join(("| key | type | default | meaning |", "|---|---|---|---|", *rows))
    return f"## {title}\n\n{kind['description']}\n{note}\n{table}\n"


def _type(field: Schema) -> str:
    if "anyOf" in field:
        (field,) = (each for each in field["anyOf"] if each != {"type": "null"})
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
