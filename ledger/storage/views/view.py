"""What a view is: columns over events, each with its meaning, written as one SQL statement.

Each column's meaning is a comment in the statement, which SQLite keeps: who opens the file with any
tool reads it there. One view serves the others. Every connection parses all of them, so what they
have in common stands once.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

EVERY_EVENT: Final = "FROM event"


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
    def select(self) -> str:
        """The statement that it is made of, with its meanings as comments.

        Its rows are computed once a query: where two views are joined, SQLite would else compute
        all rows of one for each row of the other.
        """
        lines = "\n".join(self._lines())
        rows = f"SELECT\n{lines}\n{self.source}"
        if self.source == EVERY_EVENT:
            return f"-- {self.meaning}\n{rows}"
        common = f"{self.common.rstrip()},\n" if self.common else "WITH "
        return f"""\
-- {self.meaning}
{common}facts AS MATERIALIZED (
{rows})
SELECT * FROM facts"""

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
    names = ", ".join(f"'{name}'" for name in types)
    return f"""\
events WHERE position IN (
    SELECT position FROM event
    WHERE stream IN (SELECT stream FROM event WHERE version = 1) AND type IN ({names}))"""


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
        EVERY_EVENT,
    ),
)
