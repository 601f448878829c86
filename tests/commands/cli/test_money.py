"""Money on the command line: what it would cost, what it did, and by which prices."""

from functools import partial
from pathlib import Path

import pytest

from commands.cli.shared.options import Paths
from commands.cli.shared.workspace import workspace
from commands.decisions.commands import RecordResponse
from commands.ports import GeneratedText
from ledger.events.values import Usage
from ledger.store import Ledger
from projections.tournament.matches import planned_responses
from projections.tournament.progress import AskingRules, OpenQuery, open_queries
from tests.commands.builders import lay_out
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.projections.priced import paid, put

SETTINGS = """\
[tournament]
id = "main"

[[entrants]]
id = "base"
weights = "weights/base"

[[entrants]]
id = "tuned"
weights = "weights/tuned"

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"

[judge]
provider = "anthropic-batch"
max_usd = 3.0

[[jury]]
id = "mine"
provider = "endpoint"
base_url = "http://127.0.0.1:9/v1"
model = "llama"
"""
USED = Usage(n_input=100, n_output=200, n_cache_read=900)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament whose entrants have answered, and whose judge has not been asked."""
    folder = lay_out(tmp_path)
    (folder / "tournament.toml").write_text(SETTINGS, encoding="utf-8")
    place = workspace(Paths(folder / "tournament.toml"))
    with place.recorder(print) as recorder:
        recorder.record(place.opening)
        bank = [prompt.prompt_id for prompt in recorder.state.bank]
        for cell in planned_responses(recorder.state, bank):
            text = f"{cell.entrant.entrant_id} on {cell.prompt.text}"
            made = GeneratedText(cell.response_key, text, "stop", 3, 3, 0.1)
            recorder.record(RecordResponse(cell, made))
    return folder


@pytest.fixture
def tourney(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


def judge_one(folder: Path) -> OpenQuery:
    """Record a verdict of the headline's judge that was paid for."""
    place = workspace(Paths(folder / "tournament.toml"))
    with place.recorder(print) as recorder:
        bank = [prompt.prompt_id for prompt in recorder.state.bank]
        asked = recorder.state.panel[0]
        query, *_ = open_queries(recorder.state, bank, asked, AskingRules(retries=0))
    with Ledger.open(place.ledger) as ledger:
        ledger.append(place.stream, [put(query.match, query.asked, by=asked.judge_id)])
        ledger.append(place.stream, [paid(query.asked.query_key, USED, by=asked.judge_id)])
    return query


def test_a_plan_tells_what_judging_would_cost_in_every_way(tourney: Tourney) -> None:
    """No key is needed, nothing is sent, and the estimate is marked as one."""
    plan = fields(tourney("plan", "judge", "--json"))

    cost = plan["cost"]
    assert plan["n_owed"] == 4
    assert (cost["model"], cost["is_measured"], cost["cap_usd"]) == ("claude-opus-5-5", False, 3.0)
    assert len(cost["ways"]) == 4
    assert all(0 < way["expected_usd"] < way["worst_usd"] for way in cost["ways"])


def test_a_plan_of_a_pilot_is_for_the_pilots_judge(tourney: Tourney) -> None:
    """Another model has another price."""
    plan = fields(tourney("plan", "judge", "--judge", "claude-sonnet-5-5", "--json"))

    assert plan["cost"]["model"] == "claude-sonnet-5-5"


def test_a_juror_without_a_price_costs_a_question_mark(tourney: Tourney) -> None:
    """In data it is null, in words `$?`; nowhere is it $0."""
    plan = fields(tourney("plan", "judge", "--judge", "mine", "--json"))
    words = tourney("plan", "judge", "--judge", "mine").stdout

    assert [way["expected_usd"] for way in plan["cost"]["ways"]] == [None]
    assert "one by one, no cache (as set): $?, at worst $?" in words
    assert "llama has no price" in words


def test_a_judge_that_is_not_on_the_panel_is_named(tourney: Tourney) -> None:
    """A misspelt name must not plan another judge's work."""
    done = tourney("plan", "judge", "--judge", "nobody")

    assert done.returncode == 2
    assert "--judge 'nobody' is not on the panel: claude-opus-5-5" in done.stderr


def test_counting_tokens_needs_a_key(folder: Path) -> None:
    """It asks the provider, if only to count; without a key that is said at once."""
    done = launch(
        folder, "plan", "judge", "--count-tokens", prefix=["env", "-u", "ANTHROPIC_API_KEY"]
    )

    assert done.returncode == 4
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_a_plan_exits_9_where_work_is_owed(tourney: Tourney) -> None:
    """Scripts ask by exit code."""
    assert tourney("plan", "judge", "--exit-code").returncode == 9


def test_a_reply_on_record_makes_a_plan_a_measurement(folder: Path, tourney: Tourney) -> None:
    """From the first reply on, tokens are no guess, and what was spent counts."""
    judge_one(folder)

    cost = fields(tourney("plan", "judge", "--json"))["cost"]

    assert (cost["basis"], cost["is_measured"]) == ("replies", True)
    assert cost["spent_usd"] == pytest.approx(4_580e-6)


def test_what_was_spent_is_read_from_the_ledger(folder: Path, tourney: Tourney) -> None:
    """A verdict of 100*4 + 900*0.2 + 200*20 millionths."""
    judge_one(folder)

    spend = fields(tourney("project", "spend", "--json"))

    (row,) = spend["rows"]
    assert (row["judge"], row["dimension"]) == ("claude-opus-5-5", "factuality")
    assert row["usd"] == spend["total"]["usd"] == pytest.approx(4_580e-6)
    assert row["n_cache_read"] == 900


@pytest.mark.parametrize("option", [("--judge", "mine"), ("--as-of", "12")])
def test_spending_may_be_narrowed(folder: Path, tourney: Tourney, option: tuple[str, str]) -> None:
    """Options mean here what they mean wherever they apply."""
    judge_one(folder)

    assert fields(tourney("project", "spend", *option, "--json"))["rows"] == []


def test_spending_on_one_dimension_is_all_of_it(folder: Path, tourney: Tourney) -> None:
    """There is only one."""
    judge_one(folder)

    spend = fields(tourney("project", "spend", "--dimension", "factuality", "--json"))

    assert len(spend["rows"]) == 1


def test_prices_are_printed_without_a_tournament(tmp_path: Path) -> None:
    """Whoever only wonders what it costs has no settings yet."""
    prices = fields(launch(tmp_path, "prices", "--json"))

    assert prices["schema"] == "tourney/prices@1"
    assert {row["source"] for row in prices["rows"]} == {"shipped prices of 2026-10-07"}


def test_a_plan_by_old_prices_warns(folder: Path, tourney: Tourney) -> None:
    """Prices that nobody has looked at for 60 days may well be others by now."""
    (folder / "mine.toml").write_text(
        "date = 2020-01-01\nbatch_factor = 1\ncache_write_5m_factor = 1\n"
        'cache_write_1h_factor = 1\n[[models]]\nid = "llama"\ninput = 0.5\noutput = 0.7\n',
        encoding="utf-8",
    )
    text = SETTINGS.replace("max_usd = 3.0", 'prices = "mine.toml"')
    (folder / "tournament.toml").write_text(text, encoding="utf-8")

    warned = tourney("plan", "judge", "--judge", "mine").stderr

    assert "mine.toml of 2020-01-01 are " in warned
    assert "days old and may have changed" in warned


def test_a_users_own_prices_stand_first(folder: Path, tourney: Tourney) -> None:
    """They are named in every row that they hold for, and the plan goes by them."""
    (folder / "mine.toml").write_text(
        "date = 2026-11-01\nbatch_factor = 1\ncache_write_5m_factor = 1\n"
        'cache_write_1h_factor = 1\n[[models]]\nid = "llama"\ninput = 0.5\noutput = 0.7\n',
        encoding="utf-8",
    )
    text = SETTINGS.replace("max_usd = 3.0", 'prices = "mine.toml"')
    (folder / "tournament.toml").write_text(text, encoding="utf-8")

    rows = fields(tourney("prices", "--json"))["rows"]
    plan = fields(tourney("plan", "judge", "--judge", "mine", "--json"))

    assert (rows[0]["model"], rows[0]["source"]) == ("llama", "mine.toml of 2026-11-01")
    assert len(rows) > 1
    assert plan["cost"]["ways"][0]["expected_usd"] > 0
