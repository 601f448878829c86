"""What may be asked in SQL, and what is said of what may not."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.auditing import query
from commands.auditing.query import ask
from commands.errors import ConfigurationError
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, verdicts
from tests.support.builders.worlds import cup, history


@pytest.fixture
def filed(tmp_path: Path) -> Path:
    """Give a ledger's file with a tournament of one prompt."""
    path = tmp_path / "run.ledger"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, history(cup(1), "a", "b", "tie"))
    return path


def test_views_answer_with_names_and_rows(filed: Path) -> None:
    """And so do tables of JSON, which views are made of."""
    with Ledger.read_only(filed) as ledger:
        found = ask(ledger, "SELECT winner, count(*) FROM outcomes GROUP BY winner ORDER BY winner")
        spent = ask(ledger, "SELECT count(*) AS n FROM spend")

    assert found.names == ("winner", "count(*)")
    assert found.rows == ((None, 1), ("kim", 1), ("zoe", 1))
    assert spent == (("n",), ((0,),))


def test_what_json_lacks_is_said_in_another_way(filed: Path) -> None:
    """Bytes are hex; no number is infinite; a name stands once; damaged text is no crash."""
    with Ledger.read_only(filed) as ledger:
        found = ask(ledger, "SELECT x'00ff' AS a, 9e999 AS a, 1.5 AS b, CAST(x'ff61' AS TEXT) AS c")

    assert found.names == ("a", "a_2", "b", "c")
    assert found.rows == (("00ff", None, 1.5, "\ufffda"),)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT * FROM respones", "no such table: respones; did you mean 'responses'"),
        ("SELECT respons_key FROM responses", "did you mean 'response_key'"),
        ("SELECT * FROM zzzz", "`tourney sql` lists all tables"),
        ("SELEC 1", 'near "SELEC": syntax error'),
        ("", "it must be one SELECT"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("DELETE FROM event", "it may only read"),
        ("INSERT INTO event DEFAULT VALUES", "it may only read"),
        ("CREATE TABLE t (x)", "it may only read"),
        ("CREATE TEMP VIEW t AS SELECT 1", "it may only read"),
        ("DROP TRIGGER event_is_never_deleted", "it may only read"),
        ("ATTACH 'other.db' AS other", "it may only read"),
        ("PRAGMA user_version = 3", "it may only read"),
        ("PRAGMA writable_schema = ON", "it may only read"),
        ("BEGIN IMMEDIATE", "it may only read"),
        ("VACUUM INTO 'copy.db'", "it may only read"),
        ("SELECT load_extension('x')", "not authorized to use function: load_extension"),
    ],
)
def test_what_does_not_read_is_refused(filed: Path, statement: str, why: str) -> None:
    """Nothing happens to the ledger, or beside it."""
    before = filed.read_bytes()

    with Ledger.read_only(filed) as ledger, pytest.raises(ConfigurationError, match=why) as caught:
        ask(ledger, statement)

    assert "\n" not in str(caught.value)
    assert filed.read_bytes() == before
    assert not [each for each in filed.parent.iterdir() if "db" in each.name]


def test_a_ledger_that_could_be_written_to_is_not(ledger: Ledger) -> None:
    """The connection alone would allow it."""
    ledger.append(STREAM, verdicts(N_FILED))

    with pytest.raises(ConfigurationError, match="it may only read"):
        ask(ledger, "DELETE FROM event")

    assert ledger.head.position == N_FILED


def test_ctrl_c_stops_a_query_that_would_not_end(
    filed: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    """SQLite looks for it while it works, not only between rows."""
    endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT max(x) FROM n"
    asked = iter(range(10**9))

    def interrupt_once() -> int:
        if next(asked) == 0:
            ctrl_c()
        return 0

    sqlite3.enable_callback_tracebacks(False)  # datasette turns them on for its whole process
    monkeypatch.setattr(query, "_no_reason_to_stop", interrupt_once)

    with Ledger.read_only(filed) as ledger, pytest.raises(KeyboardInterrupt):
        ask(ledger, endless)
