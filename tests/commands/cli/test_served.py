"""Entrants behind an endpoint on the command line: what they would cost, and what they answer."""

import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ledger.audit import audit
from ledger.events.responses import ResponseGenerated
from ledger.store import Ledger
from tests.commands.builders import lay_out
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields
from tests.commands.cli.warm import begin
from tests.openai_api.prices import PRICES
from tests.openai_api.server import MODEL, FakeOpenAI, Fault, Json, Said
from tests.support.patience import PATIENCE_S

SETTINGS = """\
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
def folder(tmp_path: Path, fake: FakeOpenAI) -> Path:
    """Give a tournament of two prompts, whose entrants are served by a machine of one's own."""
    folder = lay_out(tmp_path)
    text = SETTINGS.format(model=MODEL, url=fake.url, judge="")
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def billed(folder: Path, fake: FakeOpenAI) -> Path:
    """Give the same where the server's model has a price."""
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    text = SETTINGS.format(model=MODEL, url=fake.url, judge='prices = "prices.toml"')
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tourney(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


def recorded(folder: Path) -> list[ResponseGenerated]:
    """Return the responses of a ledger that must be without fault."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        assert audit(ledger) == ()
        events = [each.event for each in ledger.read()]
    return [event for event in events if isinstance(event, ResponseGenerated)]


def test_a_plan_tells_what_a_server_is_asked_for(tourney: Tourney, fake: FakeOpenAI) -> None:
    """A price that nobody knows is a question mark, in data null; nothing is sent."""
    served = fields(tourney("plan", "generate", "--json"))["served"]
    words = tourney("plan", "generate").stdout

    assert [(each["entrant_id"], each["n_requests"]) for each in served] == [
        ("greedy", 2),
        ("sampled", 2),
    ]
    assert {each["expected_usd"] for each in served} == {None}
    assert f"greedy (endpoint): 2 requests to {MODEL}" in words
    assert "out: $?, at worst $?" in words
    assert not fake.traffic.asked


def test_a_server_without_a_price_is_asked_at_once(tourney: Tourney, folder: Path) -> None:
    """It is its owner's; who pays for it names the price."""
    done = tourney("apply", "generate")

    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        0,
        "4 responses were missing: 4 generated, 0 failed",
    )
    texts = Counter(each.text.split(" to ")[0] for each in recorded(folder))
    assert texts == {"An answer at 0.0": 2, "An answer at 0.7": 2}


@pytest.mark.usefixtures("billed")
def test_nothing_is_sent_that_nobody_agreed_to_pay(tourney: Tourney, fake: FakeOpenAI) -> None:
    """The cap is kept even if every byte were a token."""
    for words in (
        ("apply", "generate"),
        ("run",),
        ("apply", "generate", "--yes", "--max-usd=1e-9"),
    ):
        done = tourney(*words)

        assert done.returncode == 5, done.stderr
        assert MODEL in done.stderr
    assert not fake.traffic.asked


def test_a_run_that_was_agreed_to_asks_each_thing_once(
    tourney: Tourney, billed: Path, fake: FakeOpenAI
) -> None:
    """A second run owes nothing, and so has nothing to agree to."""
    first, second = tourney("run", "--yes", "--max-usd", "1"), tourney("run")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(fake.traffic.asked) == len(recorded(billed)) == 4


def test_a_process_that_is_killed_asks_again_for_what_was_under_way(
    tourney: Tourney, folder: Path, fake: FakeOpenAI
) -> None:
    """What had been answered is on the ledger, and is not paid for again."""
    fake.inject(Fault("slow"), Fault("slow", delay_s=PATIENCE_S))
    process = begin(folder, ("apply", "generate"), os.environ)
    process.until(lambda: len(fake.traffic.asked) >= 2 and bool(recorded(folder)))
    process.kill()

    assert tourney("apply", "generate").returncode == 0

    asked = Counter(str(sorted(body.items(), key=str)) for body in fake.traffic.asked)
    assert sorted(asked.values()) == [1, 1, 1, 2]
    assert len({each.response_key for each in recorded(folder)}) == len(recorded(folder)) == 4


def test_an_evaluation_at_a_server_is_planned_paid_and_done_once(
    tourney: Tourney, billed: Path, fake: FakeOpenAI
) -> None:
    """What a server cannot give is said before it is asked; both entrants are one when greedy."""
    with (billed / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(EVALUATIONS)

    plan = fields(tourney("plan", "evaluate", "--json"))
    refused = tourney("apply", "evaluate")
    first, second = tourney("apply", "evaluate", "--yes"), tourney("apply", "evaluate")

    assert [(each["n_requests"], each["n_output"]) for each in plan["served"]] == [(2, 128)]
    assert 0 < plan["served"][0]["expected_usd"] < plan["served"][0]["worst_usd"]
    assert len([each for each in plan["refused"] if "needs log-likelihoods" in each]) == 2
    assert refused.returncode == 5
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(fake.traffic.asked) == 2
    said = "0 samples were missing: 0 observed, 0 unscorable; see `tourney project metrics`"
    assert said in second.stderr.splitlines()


def test_a_sample_that_two_entrants_share_is_one_gap(
    tourney: Tourney, folder: Path, fake: FakeOpenAI
) -> None:
    """Both are one when greedy: what was given up once is not told as two."""
    with (folder / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(EVALUATIONS)
    fake.inject(Fault("bad_request"))

    done = tourney("apply", "evaluate")

    assert done.returncode == 6, done.stderr
    assert "2 samples were missing: 1 observed, 1 unscorable;" in done.stderr
    assert "error: 1 sample could not be scored;" in done.stderr


def test_a_cap_counts_what_evaluations_cost(tourney: Tourney, billed: Path) -> None:
    """Responses and answers come from the same purse."""
    with (billed / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(EVALUATIONS)
    plan = fields(tourney("plan", "generate", "--json"))
    cap = f"--max-usd={sum(each['worst_usd'] for each in plan['served']) + 1e-6:.8f}"

    evaluated = tourney("apply", "evaluate", "--yes")
    generated = tourney("apply", "generate", "--yes", cap)

    assert (evaluated.returncode, generated.returncode) == (0, 5)
    assert (
        "raise --max-usd, or send fewer requests with `tourney apply ... --limit`"
        in generated.stderr
    )
