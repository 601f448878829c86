"""Where in a TOML text a key stands: tomllib keeps no line numbers, and errors should name them."""

import re
from collections.abc import Sequence
from typing import TypeAlias

Location: TypeAlias = tuple[int | str, ...]
"""Section, then the number of the table if it is an array of tables, then the key."""


def line_of(text: str, location: Location) -> int:
    """Return the line, from 1, of a key; of its table where the key is absent; else 1."""
    lines = text.split("\n")
    section = str(location[0])
    keys = [part for part in location[1:] if isinstance(part, str)]
    numbers = [part for part in location[1:] if isinstance(part, int)]
    header = re.compile(rf"\s*\[\[?\s*{re.escape(section)}\s*\]\]?")
    starts = [n for n, line in enumerate(lines) if header.match(line)]
    nth = numbers[0] if numbers else 0
    if nth >= len(starts):
        return _line_of_key(lines, section, range(len(lines))) or 1
    start = starts[nth]
    following = (n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("["))
    table = range(start, next(following, len(lines)))
    return (_line_of_key(lines, keys[0], table) if keys else None) or start + 1


def _line_of_key(lines: Sequence[str], key: str, among: range) -> int | None:
    name = re.escape(key)
    pattern = re.compile(rf"\s*(?:\"{name}\"|'{name}'|{name})\s*=")
    return next((n + 1 for n in among if pattern.match(lines[n])), None)
