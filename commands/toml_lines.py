"""Where in a TOML text a key stands: tomllib keeps no line numbers, and errors should name them."""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

Location: TypeAlias = tuple[int | str, ...]
"""Section, then the number of the table if it is an array of tables, then the key."""

_LONG_TEXT: Final = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'', re.DOTALL)


def line_of(text: str, location: Location) -> int:
    """Return the line, from 1, of a key; of its table where the key is absent; else 1."""
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
