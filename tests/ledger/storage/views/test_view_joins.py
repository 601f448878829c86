"""Views can be joined: a tournament of 10,000 pairs is answered in seconds.

What is counted are SQLite's steps, which are the same on every machine.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.builders.worlds import Fate, cup, history

N_PROMPTS = 24
FATES: tuple[Fate, ...] = ("a", "b", "tie")  # of a prompt's pairs
STEPS_AT_A_TIME = 1_000
JOINS = {
    "an outcome's verdicts": "outcomes JOIN verdicts ON query_key = forward",
    "both of them": (
        "outcomes JOIN verdicts AS f ON f.query_key = forward"
        " JOIN verdicts AS s ON s.query_key = swapped"
    ),
    "verdicts that may be missing": "outcomes LEFT JOIN verdicts ON query_key = forward",
    "outcomes of verdicts": "verdicts JOIN outcomes ON forward = query_key",
    "what was compared": (
        "outcomes AS o JOIN responses AS a ON a.prompt = o.prompt AND a.entrant = o.entrant_a"
        " JOIN responses AS b ON b.prompt = o.prompt AND b.entrant = o.entrant_b"
    ),
    "prompts": "outcomes JOIN prompts USING (tournament, prompt)",
    "what was paid": "verdicts LEFT JOIN spend ON request = query_key",
}


def tournament(path: Path, n_prompts: int) -> Path:
    """Record a tournament in which every pair was judged."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, history(cup(n_prompts), *FATES * n_prompts))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give a tournament, and one four times as long."""
    folder = tmp_path_factory.mktemp("joins")
    return tournament(folder / "1.db", N_PROMPTS), tournament(folder / "4.db", 4 * N_PROMPTS)


def steps(path: Path, query: str) -> int:
    """Return how many thousand steps SQLite takes to answer a query."""
    taken: list[None] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(lambda: taken.append(None), STEPS_AT_A_TIME)
        [(n_rows,)] = connection.execute(query)
    assert n_rows
    return len(taken)


@pytest.mark.no_cover
@pytest.mark.parametrize("what", JOINS)
def test_a_join_takes_as_long_as_its_views_together(what: str, files: tuple[Path, Path]) -> None:
    """Four times as many pairs take some four times as long; sixteen, if each meets each."""
    query = f"SELECT count(*) FROM {JOINS[what]}"  # noqa: S608 (constants)

    few, many = (steps(path, query) for path in files)

    assert many < 7 * few
