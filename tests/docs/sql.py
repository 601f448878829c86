"""docs/sql.md: every view of a ledger and its columns, and every event, from their definitions."""

import inspect
from collections.abc import Iterator
from typing import Final

from ledger.events.registry import EVENTS
from ledger.storage.schema import VIEWS
from ledger.storage.views.view import LedgerView

_HEAD: Final = """\
# The ledger in SQL

This page is made by `make docs` from the views' definitions, which stand in every ledger.

```bash
tourney sql "select winner, count(*) from outcomes group by winner"
datasette tournament.db
```

A ledger is one SQLite file. Its views show the events as tables: to `tourney sql`, `datasette`,
`sqlite3`, and every program with SQLite 3.38 or later.

- `tourney sql QUERY` takes one SELECT, is read-only, and stops at Ctrl-C. `--json` and
  `--format csv` print whole texts. Without a query it lists the tables.
- A view is computed from events whenever it is read, so it is current during a run, too.
- Ratings, intervals, and choices such as `--policy` and `--as-of` are those of `tourney project`.
- Rows come in no particular order: add `ORDER BY position`.
- A redacted text is NULL. A NUL in a text is shown as U+FFFD.
- Times are in UTC. `->>` opens what is JSON, as in `configuration ->> '$.elo.k'`.
- To see the verdicts of an outcome, join them: `outcomes JOIN verdicts ON query_key = forward`.
- `tourney verify` reports views that were added, and the next command that writes makes changed
  ones again: keep your own queries elsewhere.
"""


def sql_page() -> str:
    """Write the page."""
    return "\n".join((_HEAD, *map(_section, VIEWS), *_events()))


def _events() -> Iterator[str]:
    yield "## Every event\n"
    yield "`tourney log VerdictReceived` lists those of a type.\n"
    yield "| event | says |"
    yield "|---|---|"
    for name, event in EVENTS.types.items():
        first, _, _ = (inspect.getdoc(event) or "").partition("\n\n")
        yield f"| {name} | {' '.join(first.split())} |"
    yield ""


def _section(view: LedgerView) -> str:
    return "\n".join(_lines(view))


def _lines(view: LedgerView) -> Iterator[str]:
    yield f"## {view.name}\n"
    yield f"{view.meaning[0].upper()}{view.meaning[1:]}.\n"
    yield "| column | meaning |"
    yield "|---|---|"
    yield from (f"| `{column.name}` | {column.meaning} |" for column in view.columns)
    yield ""
