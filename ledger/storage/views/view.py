"""What a view is: columns over events, each with its meaning, written as one SQL statement.

Each column's meaning is a comment in the statement, which SQLite keeps: who opens the file with any
tool reads it there. Two views serve the others. Every connection parses all of them, so what they
have in common stands once.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

KINDS_AT_ONCE: Final = 4_096  # events that the table of kinds grows by; a view says it, too


class ViewColumn(NamedTuple):
    """A column of a view: its name, what it is computed by, and what it means."""

    name: str
    sql: str
    meaning: str


class LedgerView(NamedTuple):
    """A table of facts that is computed from events whenever it is read."""

    name: str
    meaning: str
    columns: tuple[ViewColumn, ...]
    source: str  # the statement from FROM on
    common: str = ""  # what its source refers to: WITH ...

    @property
    def statement(self) -> str:
        """The statement that creates it, with its meanings as comments."""
        lines = "\n".join(self._lines())
        return f"""\
CREATE VIEW {self.name} AS -- {self.meaning}
{self.common}SELECT
{lines}
{self.source}"""

    def _lines(self) -> Iterator[str]:
        for column in self.columns:
            name = "" if column.sql == column.name else f" AS {column.name}"
            comma = "" if column is self.columns[-1] else ","
            yield f"  {column.sql}{name}{comma} -- {column.meaning}"


def known(name: str, meaning: str) -> ViewColumn:
    """Return a column that the source has by this name."""
    return ViewColumn(name, name, meaning)


def field(name: str, meaning: str, path: str | None = None) -> ViewColumn:
    """Return a column that is a field of the event: the one of its name, or at another path."""
    return ViewColumn(name, f"data ->> '$.{path or name}'", meaning)


def text(name: str, meaning: str, path: str | None = None) -> ViewColumn:
    """Return a column that is a text of the event; NULL once it was redacted."""
    return ViewColumn(name, f"texts ->> '$.{path or name}'", meaning)


def events(*types: str) -> str:
    """Return the source that is the events of some types, in order of position."""
    names = ", ".join(f"'{each}'" for each in types)
    return f"""\
events WHERE position IN (
    SELECT position FROM events_by_type WHERE type IN ({names}))"""


TOURNAMENT: Final = ViewColumn("tournament", "stream", "the tournament's id")
AT: Final = known("at", "when it was recorded, in UTC")
PLACE: Final = known("position", "of its event in the ledger")

# SQLite's JSON functions end a text at its first NUL, so U+FFFD stands in its place. An escaped
# backslash is spelt in another way first: what it escapes is no escape.
_TEXTS: Final = r"""iif(CAST(data AS TEXT) ->> '$.redacted' IS NULL,
    replace(replace(CAST(data AS TEXT), '\\', '\u005c'), '\u0000', '\ufffd'), NULL)"""

EVENTS: Final = (
    LedgerView(
        "events",
        "every event, as it was recorded",
        (
            PLACE,
            known("stream", "the tournament's id, or battles: and the name of an imported set"),
            known("type", "what happened"),
            ViewColumn(
                "at",
                "strftime('%Y-%m-%dT%H:%M:%SZ', recorded_us / 1000000, 'unixepoch')",
                AT.meaning,
            ),
            ViewColumn("data", "CAST(data AS TEXT)", "as JSON"),
            ViewColumn(
                "texts",
                _TEXTS,
                "data of which texts are read: NULL once redacted, U+FFFD for NUL",
            ),
        ),
        "FROM event",
    ),
    LedgerView(
        "events_by_type",
        "where the events of a type are, found without reading them",
        (PLACE, known("stream", "as in events"), known("type", "what happened")),
        f"""\
FROM (
    SELECT kind.position, kind.stream, kind.type
    FROM event AS began CROSS JOIN event_kind AS kind ON kind.stream = began.stream
    WHERE began.version = 1
    UNION ALL
    SELECT position, stream, type FROM event WHERE position > (
      SELECT coalesce(max(position), 0) / {KINDS_AT_ONCE} * {KINDS_AT_ONCE} FROM event))""",
    ),
)
