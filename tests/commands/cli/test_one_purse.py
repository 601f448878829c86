"""One purse for entrants and judges: what one of them has in flight is on its way for all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.anthropic_api.process import FakeProcess
from tests.commands.cli import paid
from tests.commands.cli.paid import tourney
from tests.openai_api.prices import PRICES
from tests.openai_api.server import MODEL, FakeOpenAI

N_QUERIES: Final = 36  # one prompt, 3 dimensions, 6 pairs, both orders
JUDGE: Final = ("apply", "judge", "--yes")
PILOT: Final = "claude-sonnet-5-5"

SERVED: Final = """
[[entrants]]
id = "served"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
"""
PILOT_OF_ONE: Final = """
[pilot]
size = 1
"""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeProcess]:
    """Give a provider whose batches end when they are told to."""
    with FakeProcess(tmp_path / "provider", "--ends-after-retrievals", "-1") as fake:
        yield fake


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """Give the server of an entrant, or of a judge."""
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament of one prompt, answered by four entrants, that knows a server's price."""
    judge = {"prewarm": False, "prices": "prices.toml"}
    place = paid.lay_out(tmp_path / "paid", n_prompts=1, judge=judge)
    (place / "prices.toml").write_text(PRICES, encoding="utf-8")
    paid.record_responses(place)
    return place


def add(folder: Path, tables: str) -> None:
    """Add tables to the settings."""
    with (folder / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(tables)


def fields(folder: Path, fake: FakeProcess, *words: str) -> dict[str, Any]:
    """Return what a command says as data."""
    done = tourney(folder, *words, "--json", url=fake.url)
    assert done.code == 0, done.err
    said: dict[str, Any] = json.loads(done.out)
    return said


def test_a_cap_on_generation_counts_the_batches_in_flight(
    folder: Path, fake: FakeProcess, server: FakeOpenAI
) -> None:
    """They are as good as paid; when they have ended, only what they did cost is gone."""
    sent = tourney(folder, *JUDGE, "--no-wait", url=fake.url)
    in_flight_usd = fields(folder, fake, "plan", "judge")["cost"]["in_flight_at_worst_usd"]
    add(folder, SERVED.format(model=MODEL, url=server.url))
    generate = ("apply", "generate", "--yes", "--max-usd", f"{in_flight_usd:.6f}")

    refused = tourney(folder, *generate, url=fake.url)
    n_asked = len(server.traffic.asked)
    fake.end_batches()
    waited = tourney(folder, "batch", "wait", url=fake.url)
    generated = tourney(folder, *generate, url=fake.url)

    assert (sent.code, refused.code, waited.code, generated.code) == (7, 5, 0, 0), generated.err
    assert "is spent, in flight or perhaps billed, and " in refused.err
    assert (n_asked, len(server.traffic.asked)) == (0, 1)


def test_a_judge_without_a_price_is_found_out_before_a_capped_run_generates(
    folder: Path, fake: FakeProcess, server: FakeOpenAI
) -> None:
    """The responses would be paid for, and then nobody could judge them."""
    text = (folder / "tournament.toml").read_text(encoding="utf-8")
    local = (
        f'"endpoint"\nbase_url = "{server.url}"\nheadline_model = "local"\npilot_model = "local"'
    )
    settings = text.replace('"anthropic-batch"', local)
    (folder / "tournament.toml").write_text(settings, encoding="utf-8")
    add(folder, SERVED.format(model=MODEL, url=server.url))

    done = tourney(folder, "run", "--yes", "--max-usd", "100", url=fake.url)

    assert done.code == 5, done.err
    assert "a cap is set, and this judge has no price; add one with [judge] prices" in done.err
    assert not server.traffic.asked


def test_a_pilots_batch_that_the_headline_receives_is_decided(
    folder: Path, fake: FakeProcess
) -> None:
    """Nothing else says that its pairs are pending: no query is owed."""
    add(folder, PILOT_OF_ONE)
    sent = tourney(folder, *JUDGE, "--mode", "pilot", "--no-wait", url=fake.url)
    fake.end_batches()

    received = tourney(folder, *JUDGE, "--no-wait", url=fake.url)

    assert (sent.code, received.code) == (7, 7), received.err
    accounts = fields(folder, fake, "project", "progress", "--judge", PILOT)["accounts"]
    assert [each["pending"] for each in accounts.values()] == [0, 0, 0]


def test_a_batch_in_flight_is_not_forgotten_when_its_judge_is_asked_one_by_one(
    folder: Path, fake: FakeProcess
) -> None:
    """That 0 queries were open would read as if all were done."""
    sent = tourney(folder, *JUDGE, "--no-wait", url=fake.url)

    direct = tourney(folder, *JUDGE, "--provider", "anthropic", url=fake.url)
    fake.end_batches()
    waited = tourney(folder, "batch", "wait", url=fake.url)
    done = tourney(folder, *JUDGE, "--provider", "anthropic", url=fake.url)

    assert (sent.code, direct.code, waited.code, done.code) == (7, 7, 0, 0), done.err
    assert f"{N_QUERIES} queries to 'claude-opus-5-5' in batches" in direct.err
    assert "`tourney batch wait` receives" in direct.err
    assert len(fake.bill().paid) == N_QUERIES


def test_a_judge_of_whom_nothing_is_in_flight_is_done_when_it_is_done(
    folder: Path, fake: FakeProcess
) -> None:
    """The pilot's batch is told of, and holds up nobody else."""
    add(folder, PILOT_OF_ONE)
    tourney(folder, *JUDGE, "--mode", "pilot", "--no-wait", url=fake.url)

    done = tourney(folder, *JUDGE, "--provider", "anthropic", url=fake.url)

    assert done.code == 0, done.err
    assert f"a batch to '{PILOT}' is in flight" in done.err


def test_a_run_publishes_nothing_while_its_judge_is_asked_by_a_batch(
    folder: Path, fake: FakeProcess
) -> None:
    """A headline of pairs that are on their way would look like one with gaps."""
    tourney(folder, *JUDGE, "--no-wait", url=fake.url)
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").replace('"anthropic-batch"', '"anthropic"')
    settings.write_text(text, encoding="utf-8")

    done = tourney(folder, "run", "--yes", "--allow-gaps", url=fake.url)

    assert done.code == 7, done.err
    assert f"{N_QUERIES} queries to 'claude-opus-5-5' in batches" in done.err
    assert "published" not in done.err
    assert not (folder / "runs").exists()


def test_what_another_tournament_has_in_flight_is_not_done(folder: Path, fake: FakeProcess) -> None:
    """All pairs are pending, and nothing else says so."""
    tourney(folder, *JUDGE, "--no-wait", url=fake.url)
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").replace('id = "paid"', 'id = "second"')
    settings.write_text(text, encoding="utf-8")
    paid.record_responses(folder)

    done = tourney(folder, *JUDGE, url=fake.url)

    assert done.code == 7, done.err
    assert "receive them with the settings of tournament 'paid'" in done.err


def test_a_refusal_names_the_cap_that_was_said(
    folder: Path, fake: FakeProcess, server: FakeOpenAI
) -> None:
    """What entrants took is told as spent: nobody set what is left of a cap."""
    dear = PRICES.replace("input = 2.0", "input = 2000.0").replace("= 10.0", "= 10000.0")
    (folder / "prices.toml").write_text(dear, encoding="utf-8")
    add(folder, SERVED.format(model=MODEL, url=server.url))
    generate = ("apply", "generate", "--yes", "--max-usd", "9")
    generated = tourney(folder, *generate, url=fake.url)

    refused = tourney(folder, *JUDGE, "--max-usd", "0.2", url=fake.url)

    assert (generated.code, refused.code) == (0, 5), refused.err
    assert "the cap is $0.2000" in refused.err
    assert "$0.0000 spent" not in refused.err
    assert "and $0 spent" not in refused.err
    assert " and $0.00 spent" not in refused.err
