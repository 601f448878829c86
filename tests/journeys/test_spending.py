"""Money on the command line: what it would cost, what it did, and by which prices."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from commands.cli.shared.workspace import workspace
from commands.spending.budget import no_price
from ledger.events.money import Usage
from ledger.events.responses import ResponseGenerated
from ledger.store import Ledger
from projections.tournament.remaining import OpenQuery, open_queries
from tests.providers.openai import MODEL, PRICES, FakeOpenAI, Fault, Json, Said
from tests.support.builders.commands import lay_out, record, write_bank
from tests.support.builders.money import paid, put
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.paid import record_responses
from tests.support.command_line.settled import events_in, fields

PAID_SETTINGS = """\
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
pilot_model = "claude-sonnet-5-5"
max_usd = 3.0

[[jury]]
id = "mine"
provider = "endpoint"
base_url = "http://127.0.0.1:9/v1"
model = "llama"
"""
OWN_PRICES = """\
date = {}
batch_factor = 1
cache_write_5m_factor = 1
cache_write_1h_factor = 1
[[models]]
id = "llama"
input = 0.5
output = 0.7
"""
USED = Usage(n_input=100, n_output=200, n_cache_read=900)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament whose entrants have answered, and whose judge has not been asked."""
    folder = lay_out(tmp_path)
    (folder / "tournament.toml").write_text(PAID_SETTINGS, encoding="utf-8")
    record_responses(folder)
    return folder


@pytest.fixture
def tourney(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


def judge_one(folder: Path) -> OpenQuery:
    """Record a verdict of the headline's judge that was paid for."""
    place = workspace(folder / "tournament.toml", None)
    with place.recorder(print) as recorder:
        bank = [prompt.prompt_id for prompt in recorder.state.bank]
        asked = recorder.state.panel[0]
        query, *_ = open_queries(recorder.state, bank, asked, retries=0)
    with Ledger.open(place.ledger) as ledger:
        ledger.append(place.stream, [put(query.match, query.asked, by=asked.judge_id)])
        ledger.append(place.stream, [paid(query.asked.query_key, USED, by=asked.judge_id)])
    return query


def test_a_plan_tells_what_judging_would_cost_in_every_way(tourney: Tourney) -> None:
    """No key is needed, nothing is sent; another model has another price, or a question mark."""
    plan = fields(tourney("plan", "judge", "--json"))
    pilot = fields(tourney("plan", "judge", "--judge", "claude-sonnet-5-5", "--json"))
    unpriced = fields(tourney("plan", "judge", "--judge", "mine", "--json"))
    words = tourney("plan", "judge", "--judge", "mine").stdout

    cost = plan["cost"]
    assert plan["n_owed"] == 4
    assert (cost["model"], cost["is_measured"], cost["cap_usd"]) == ("claude-opus-5-5", False, 3.0)
    assert len(cost["ways"]) == 4
    assert all(0 < way["expected_usd"] < way["worst_usd"] for way in cost["ways"])
    assert pilot["cost"]["model"] == "claude-sonnet-5-5"
    assert [way["expected_usd"] for way in unpriced["cost"]["ways"]] == [None]
    assert "one by one, no cache (as set): $?, at worst $?" in words
    assert "llama has no price" in words
    assert tourney("plan", "judge", "--exit-code").returncode == 9


def test_a_plan_that_cannot_be_made_is_refused(
    tourney: Tourney, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt name must not plan another judge's work; counting tokens asks the provider."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    nobody = tourney("plan", "judge", "--judge", "nobody")
    keyless = tourney("plan", "judge", "--count-tokens")

    assert (nobody.returncode, keyless.returncode) == (2, 4)
    assert "--judge 'nobody' is not on the panel: claude-opus-5-5" in nobody.stderr
    assert "ANTHROPIC_API_KEY" in keyless.stderr


def test_what_was_spent_is_read_from_the_ledger_and_makes_a_plan_a_measurement(
    folder: Path, tourney: Tourney
) -> None:
    """A verdict of 100*4 + 900*0.2 + 200*20 millionths; options narrow it as everywhere."""
    judge_one(folder)

    spend = fields(tourney("project", "spend", "--json"))
    cost = fields(tourney("plan", "judge", "--json"))["cost"]

    (row,) = spend["rows"]
    assert (row["judge"], row["dimension"]) == ("claude-opus-5-5", "factuality")
    assert row["usd"] == spend["total"]["usd"] == pytest.approx(4_580e-6)
    assert row["n_cache_read"] == 900
    assert (cost["basis"], cost["is_measured"]) == ("replies", True)
    assert cost["spent_usd"] == pytest.approx(4_580e-6)
    for words, n_rows in (
        ("--judge mine", 0),
        ("--as-of 12", 0),
        ("--dimension factuality", 1),
    ):
        narrowed = fields(tourney("project", "spend", *words.split(), "--json"))["rows"]
        assert len(narrowed) == n_rows, words


def test_a_users_own_prices_stand_first_and_warn_once_they_are_old(
    folder: Path, tourney: Tourney
) -> None:
    """Nobody looked at them for 60 days."""
    text = PAID_SETTINGS.replace("max_usd = 3.0", 'prices = "mine.toml"')
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    prices = folder / "mine.toml"

    prices.write_text(OWN_PRICES.format("2020-01-01"), encoding="utf-8")
    warned = tourney("plan", "judge", "--judge", "mine").stderr
    prices.write_text(OWN_PRICES.format("2026-11-01"), encoding="utf-8")
    plan = fields(tourney("plan", "judge", "--judge", "mine", "--json"))

    assert "mine.toml of 2020-01-01 are " in warned
    assert "days old and may have changed" in warned
    assert "compare mine.toml with the provider's" in warned
    assert plan["cost"]["ways"][0]["expected_usd"] > 0


ENDPOINT_SETTINGS = """\
[tournament]
id = "served"

[[entrants]]
id = "greedy"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
concurrency = 1

[[entrants]]
id = "sampled"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
temperature = 0.7

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"

[judge]
{judge}
"""
EVALUATIONS = """
[[evaluations]]
id = "recall"
uses = "bank-rollout"

[[evaluations]]
id = "perplexity"
uses = "text-perplexity"
parameters = { path = "rubrics/factuality.md" }
"""


def say(body: Json) -> Said:
    """Answer each request in its own words."""
    return Said(f"An answer at {body['temperature']} to {body['messages']}")


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """Give the server of both entrants."""
    with FakeOpenAI(say) as fake:
        yield fake


@pytest.fixture
def endpoint_folder(tmp_path: Path, fake: FakeOpenAI) -> Path:
    """Give a tournament of two prompts, whose entrants are served by a machine of one's own."""
    return at_endpoint(lay_out(tmp_path), fake)


def at_endpoint(folder: Path, fake: FakeOpenAI, judge: str = "") -> Path:
    """Write settings of entrants at the server, with these keys in [judge]."""
    text = ENDPOINT_SETTINGS.format(model=MODEL, url=fake.url, judge=judge)
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def billed(endpoint_folder: Path, fake: FakeOpenAI) -> Path:
    """Give the same where the server's model has a price."""
    (endpoint_folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    return at_endpoint(endpoint_folder, fake, 'prices = "prices.toml"')


@pytest.fixture
def tourney_at_endpoint(endpoint_folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, endpoint_folder)


def test_a_server_without_a_price_is_asked_at_once_and_costs_a_question_mark(
    tourney_at_endpoint: Tourney, endpoint_folder: Path, fake: FakeOpenAI
) -> None:
    """It is its owner's; what nobody knows is null in data, and never `nothing was spent`."""
    served = fields(tourney_at_endpoint("plan", "generate", "--json"))["served"]
    words = tourney_at_endpoint("plan", "generate").stdout
    assert not fake.traffic.asked
    done = tourney_at_endpoint("apply", "generate")
    told = tourney_at_endpoint("project", "spend").stdout

    assert [(each["entrant_id"], each["n_requests"]) for each in served] == [
        ("greedy", 2),
        ("sampled", 2),
    ]
    assert {each["expected_usd"] for each in served} == {None}
    assert f"greedy (endpoint): 2 requests to {MODEL}" in words
    assert "out: $?, at worst $?" in words
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        0,
        "4 responses were missing: 4 generated, 0 failed",
    )
    texts = Counter(
        each.text.split(" to ")[0] for each in events_in(endpoint_folder, ResponseGenerated)
    )
    assert texts == {"An answer at 0.0": 2, "An answer at 0.7": 2}
    assert [each["usd"] for each in at_entrants(tourney_at_endpoint)] == [None, None]
    assert ": $?" in told
    assert no_price(MODEL) in told
    assert "nothing was spent" not in told


def test_a_run_without_a_response_does_not_say_that_all_are_there(
    tourney_at_endpoint: Tourney, fake: FakeOpenAI
) -> None:
    """Nothing is owed, and nothing is known either."""
    fake.traffic.say = lambda _: Said("To", finish_reason="content_filter")
    tourney_at_endpoint("run")

    again = tourney_at_endpoint("run")

    said = "nothing remains to be done, but 2 pairs have no outcome: 2 no_response"
    assert said in again.stderr.splitlines()
    assert "every response and verdict" not in again.stderr
    assert again.returncode == 6


@pytest.mark.usefixtures("billed")
def test_nothing_is_sent_that_nobody_agreed_to_pay(
    tourney_at_endpoint: Tourney, fake: FakeOpenAI
) -> None:
    """Without consent, or where the cap is below what is expected."""
    for words, why in (
        (("apply", "generate"), MODEL),
        (("run",), MODEL),
        (("apply", "generate", "--yes", "--max-usd=1e-9"), "the cap is $0.0000: $0.00 is spent"),
    ):
        done = tourney_at_endpoint(*words)

        assert done.returncode == 5, done.stderr
        assert why in done.stderr
    assert not fake.traffic.asked


def test_a_run_that_was_agreed_to_asks_each_thing_once(
    tourney_at_endpoint: Tourney, billed: Path, fake: FakeOpenAI
) -> None:
    """A second one has nothing to agree to; what was spent stays, whatever the prices are later."""
    first = tourney_at_endpoint("run", "--yes", "--max-usd", "1")
    second = tourney_at_endpoint("run")
    before, words = at_entrants(tourney_at_endpoint), tourney_at_endpoint("project", "spend").stdout
    dear = PRICES.replace("input = 2.0", "input = 200.0")
    (billed / "prices.toml").write_text(dear, encoding="utf-8")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(fake.traffic.asked) == len(events_in(billed, ResponseGenerated)) == 4
    assert fsum(row["usd"] for row in before) == pytest.approx(fake.billed_usd, abs=1e-9)
    greedy, sampled = before
    used = greedy["n_input"] * 2.0 + greedy["n_output"] * 10.0
    assert greedy["usd"] == pytest.approx(used / 1e6)
    assert [greedy["n_answers"], sampled["n_answers"]] == [2, 2]
    assert {row["n_maybe_billed"] for row in before} == {0}
    assert f"greedy (endpoint): 2 answers by {MODEL}" in words
    assert "by prices.toml of 2026-04-27" in words
    assert at_entrants(tourney_at_endpoint) == before
    for option in ("--judge=reference", "--dimension=factuality"):  # all of them use the same
        assert at_entrants(tourney_at_endpoint, option) == []


PAID_JUDGE = """provider = "endpoint"
model = "{model}"
base_url = "{url}"
max_tokens = 1000
prices = "prices.toml"
"""


@pytest.fixture
def all_paid(billed: Path, fake: FakeOpenAI) -> Path:
    """Give a tournament whose entrants and judge are served at a price."""
    return at_endpoint(billed, fake, PAID_JUDGE.format(model=MODEL, url=fake.url))


def test_no_response_is_paid_for_that_could_not_be_judged(all_paid: Path, fake: FakeOpenAI) -> None:
    """Generating alone costs less than the cap; that judging or both cost more is known before."""
    settings = (all_paid / "tournament.toml").read_text(encoding="utf-8")
    for cap, words, why in (
        ("", "--yes --max-usd=0.012", "the cap is $0.0120: $0.00 is spent, and 4 requests to"),
        ("", "--yes --max-usd=0.0245", "the cap is $0.0245: $0.00 is spent, and 8 requests to"),
        ("max_usd = 0.012\n", "--yes", "raise --max-usd or [judge] max_usd"),
    ):
        (all_paid / "tournament.toml").write_text(settings + cap, encoding="utf-8")

        done = launch(all_paid, "run", *words.split())

        assert done.returncode == 5, done.stderr
        assert why in done.stderr
    assert not fake.traffic.asked


def test_one_question_tells_the_bill_of_all_steps(all_paid: Path, fake: FakeOpenAI) -> None:
    """With --yes nobody is asked, but what both steps cost stands in the log.

    Where what a judge reads costs nothing, "from $1 to $1" would be a riddle: it is one amount.
    """
    free_to_read = PRICES.replace("input = 2.0", "input = 0.0")
    (all_paid / "prices.toml").write_text(free_to_read, encoding="utf-8")

    done = launch(all_paid, "run", "--yes", "--max-usd", "1")

    assert done.returncode in {0, 6}, done.stderr
    (judging,) = (line for line in done.stderr.splitlines() if line.startswith("judging: "))
    assert re.fullmatch(r"judging: 4 requests to \S+, about \$0.0\d+, at worst \$[\d.]+", judging)
    assert f"generating: 4 requests to {MODEL}, about $0.0" in done.stderr
    assert len(fake.traffic.asked) >= 8


def test_judging_before_generating_says_what_is_missing(all_paid: Path, fake: FakeOpenAI) -> None:
    """Nothing is open, and yet nothing is done."""
    done = launch(all_paid, "apply", "judge", "--yes")
    allowed = launch(all_paid, "apply", "judge", "--yes", "--allow-gaps")

    assert (done.returncode, allowed.returncode) == (6, 0), done.stderr
    assert "2 pairs wait for responses: run `tourney apply generate` first" in done.stderr
    assert not fake.traffic.asked


def test_where_nothing_can_be_judged_nothing_is_generated(all_paid: Path, fake: FakeOpenAI) -> None:
    """The rubric needs gold answers, of which the bank has none; a blank one is none."""
    lines = [record("p1", gold_answer=None), record("p2", gold_answer=" \n")]
    write_bank(all_paid / "bank.jsonl", lines)

    commands = (("run", "--yes"), ("apply", "judge", "--yes"), ("plan", "judge"), ("doctor",))
    run, judge, plan, doctor = (launch(all_paid, *words) for words in commands)

    assert (run.returncode, judge.returncode) == (2, 2), run.stderr + judge.stderr
    assert not fake.traffic.asked
    assert not (all_paid / "runs").exists()
    for each in (run, judge, plan):
        assert "factuality: nothing can be judged: the rubric needs gold answers" in each.stderr
    assert doctor.returncode == 1
    assert "nothing can be judged" in " ".join(doctor.stdout.split())


def test_an_evaluation_at_a_server_is_planned_paid_and_done_once(
    tourney_at_endpoint: Tourney, billed: Path, fake: FakeOpenAI
) -> None:
    """What a server cannot give is said before it is asked; both entrants are one when greedy."""
    with (billed / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(EVALUATIONS)

    plan = fields(tourney_at_endpoint("plan", "evaluate", "--json"))
    refused = tourney_at_endpoint("apply", "evaluate")
    first, second = (
        tourney_at_endpoint("apply", "evaluate", "--yes"),
        tourney_at_endpoint("apply", "evaluate"),
    )

    assert [(each["n_requests"], each["n_output"]) for each in plan["served"]] == [(2, 128)]
    assert 0 < plan["served"][0]["expected_usd"] < plan["served"][0]["worst_usd"]
    assert len([each for each in plan["refused"] if "needs log-likelihoods" in each]) == 2
    assert refused.returncode == 5
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(fake.traffic.asked) == 2
    said = "0 samples were missing: 0 observed, 0 unscorable; see `tourney project metrics`"
    assert said in second.stderr.splitlines()


def test_rejected_responses_are_asked_for_again(
    tourney_at_endpoint: Tourney, endpoint_folder: Path, fake: FakeOpenAI
) -> None:
    """As judges' queries are, by the same words; a revision would pay for all of them."""
    fake.inject(Fault("bad_request"))
    first = tourney_at_endpoint("apply", "generate")
    again = tourney_at_endpoint("apply", "generate")
    wrong = tourney_at_endpoint("apply", "generate", "--retry", "unreadable")
    retried = tourney_at_endpoint("apply", "generate", "--retry", "rejected,refused")

    assert [each.returncode for each in (first, again, wrong, retried)] == [6, 6, 2, 0]
    assert "name some of not_finite, prompt_too_long, refused, rejected" in wrong.stderr
    assert "1 responses were missing: 1 generated, 0 failed" in retried.stderr
    assert len(fake.traffic.asked) == 5
    assert len(events_in(endpoint_folder, ResponseGenerated)) == 4


def test_what_an_unpriced_entrant_may_have_cost_is_unknown(
    tourney_at_endpoint: Tourney, fake: FakeOpenAI
) -> None:
    """It is never $0.00 at most, and null in data."""
    fake.inject(*[Fault("server_error")] * 4)
    done = tourney_at_endpoint("apply", "generate")
    words = tourney_at_endpoint("project", "spend").stdout

    rows = at_entrants(tourney_at_endpoint)
    assert done.returncode == 1
    assert {(row["usd"], row["maybe_usd"]) for row in rows} == {(None, None)}
    assert "may be billed: $? (the price was unknown)" in words
    assert "$0.00 at most" not in words


def at_entrants(tourney: Tourney, *options: str) -> list[dict[str, Any]]:
    """Return what entrants took, as data."""
    done = tourney("project", "spend", "--json", *options)
    found: list[dict[str, Any]] = fields(done)["entrants"]
    return found


def test_a_cap_counts_what_evaluations_cost(
    tourney_at_endpoint: Tourney, billed: Path, fake: FakeOpenAI
) -> None:
    """Responses and answers come from the same purse."""
    with (billed / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(EVALUATIONS)

    evaluated = tourney_at_endpoint("apply", "evaluate", "--yes")
    (spent,) = at_entrants(tourney_at_endpoint)
    cap = f"--max-usd={spent['usd'] + 1e-6:.8f}"
    generated = tourney_at_endpoint("apply", "generate", "--yes", cap)

    assert (evaluated.returncode, generated.returncode) == (0, 5)
    assert spent["n_answers"] == len(fake.traffic.asked) == 2
    assert "send fewer requests with `tourney apply ... --limit`" in generated.stderr
