"""What entrants behind endpoints took, beside what judges did: `--max-usd` counts both."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands.decisions.recorder import EvaluationRecorder, Recorder
from commands.evaluating.evaluate import evaluate_owed, plan_evaluation
from commands.ports import no_progress
from commands.settings.sections import EvaluationOptions
from commands.spending.endpoints import spent_at_endpoints
from commands.spending.prices import price_table
from ledger.store import Ledger
from tests.builders import STREAM, entrant, known, opened, responses
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.commands.evaluations.examples import Capitals, answering

PRICED = entrant("amy", loader="endpoint", weights="claude-opus-5-5", dtype=None)
OPENING = opened(entrants=[PRICED, entrant("zoe", loader="endpoint", weights="mine", dtype=None)])
RESPONSES = responses(known(*OPENING))  # of 3 tokens in and 3 out
SHIPPED = price_table()
USD = (3 * 4 + 3 * 20) / 1e6
SETTINGS = '[tournament]\nid = "main"\n[judge]\nprices = "mine.toml"\n[elo]\nk = "much"\n'
PRICES = """\
date = 2026-11-01
batch_factor = 1
cache_write_5m_factor = 1
cache_write_1h_factor = 1
[[models]]
id = "mine"
input = 100
output = 100
"""


@pytest.fixture
def tourney(tmp_path: Path) -> Tourney:
    """Give a function that runs the command line where two entrants have answered a prompt."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, (*OPENING, *RESPONSES))
    return partial(launch, tmp_path)


def entrants(tourney: Tourney, *options: str) -> list[dict[str, Any]]:
    """Return what entrants took, as data."""
    done = tourney("project", "spend", "--json", *options)
    found: list[dict[str, Any]] = fields(done)["entrants"]
    return found


def test_what_entrants_were_served_is_told(tourney: Tourney) -> None:
    """It is money, too; where no price is known, that is said, and never `nothing was spent`."""
    amy, zoe, remedy = tourney("project", "spend").stdout.splitlines()

    took = "3 tokens in, 3 out"
    assert amy == (
        f"amy (endpoint): 1 answer by claude-opus-5-5, {took}: $0.0001 by {SHIPPED.sheets[0].title}"
    )
    assert zoe == f"zoe (endpoint): 1 answer by mine, {took}: $?"
    assert remedy == "mine has no price; add it to a table and set [judge] prices = FILE"
    assert [each["usd"] for each in entrants(tourney)] == [pytest.approx(USD), None]


def test_a_ledger_alone_is_priced_by_the_shipped_table(tourney: Tourney, tmp_path: Path) -> None:
    """A colleague's ledger comes without settings."""
    (tmp_path / "tournament.db").rename(tmp_path / "theirs.db")

    first, _ = entrants(tourney, "--ledger", "theirs.db")

    assert first["usd"] == pytest.approx(USD)


def test_prices_of_the_settings_go_first_and_nothing_else_of_them_is_read(
    tourney: Tourney, tmp_path: Path
) -> None:
    """Spending is looked at while somebody edits the other sections."""
    (tmp_path / "tournament.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "mine.toml").write_text(PRICES, encoding="utf-8")

    _, second = entrants(tourney)

    assert second["usd"] == pytest.approx(600 / 1e6)
    assert second["price_table"] == "mine.toml of 2026-11-01"


def test_it_is_as_of_a_position(tourney: Tourney) -> None:
    """What was answered later was not spent then."""
    then = str(len(OPENING) + 1)

    assert [each["entrant_id"] for each in entrants(tourney, "--as-of", then)] == ["amy"]
    assert entrants(tourney, "--as-of", str(len(OPENING))) == []


@pytest.mark.parametrize("option", [("--judge", "reference"), ("--dimension", "factuality")])
def test_it_is_on_no_judge_and_no_dimension(tourney: Tourney, option: tuple[str, str]) -> None:
    """All of them use the same responses."""
    assert entrants(tourney, *option) == []


def test_answers_of_evaluations_count_as_the_cap_counts_them(
    tourney: Tourney, tmp_path: Path
) -> None:
    """Otherwise a cap is reached that the table knows nothing of."""
    three = Capitals(*((f"{n}?", "yes") for n in range(3)))
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        plan = plan_evaluation(three, answering(lambda _: "yes", PRICED)[0], EvaluationOptions())
        evaluate_owed(EvaluationRecorder(ledger, STREAM), plan, on_progress=no_progress)
        state = Recorder(ledger, STREAM).state
        counted_usd = spent_at_endpoints(ledger, state, SHIPPED)

    first, _ = entrants(tourney)

    assert first["n_answers"] == 1 + 3
    assert first["usd"] == pytest.approx(counted_usd)
