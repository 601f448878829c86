"""Whole tournaments with paid judges and entrants, to the provider's bill; one purse for all."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import MODEL, PRICES, FakeOpenAI
from tests.support.command_line import paid
from tests.support.command_line.paid import tourney

N_QUERIES_OF_ONE_PROMPT: Final = 36  # one prompt, 3 dimensions, 6 pairs, both orders
JUDGE: Final = ("apply", "judge", "--yes")
DIRECT: Final = {"TOURNEY_JUDGE_PROVIDER": "anthropic"}
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
def waiting_fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end when they are told to."""
    with paid.provider(n_looks=None) as fake:
        yield fake


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """Give the server of an entrant, or of a judge."""
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def priced_folder(tmp_path: Path) -> Path:
    """Give a tournament of one prompt, answered by four entrants, that knows a server's price."""
    judge = {"cache": "off", "prices": "prices.toml"}
    place = paid.lay_out(tmp_path / "paid", n_prompts=1, judge=judge)
    (place / "prices.toml").write_text(PRICES, encoding="utf-8")
    paid.record_responses(place)
    return place


def add(folder: Path, tables: str) -> None:
    """Add tables to the settings."""
    with (folder / "tournament.toml").open("a", encoding="utf-8") as settings:
        settings.write(tables)


def fields(folder: Path, fake: FakeAnthropic, *words: str) -> dict[str, Any]:
    """Return what a command says as data."""
    done = tourney(folder, *words, "--json", url=fake.url)
    assert done.code == 0, done.err
    said: dict[str, Any] = json.loads(done.out)
    return said


def test_a_cap_on_generation_counts_the_batches_in_flight(
    priced_folder: Path, waiting_fake: FakeAnthropic, server: FakeOpenAI
) -> None:
    """They are as good as paid; when they have ended, only what they did cost is gone."""
    sent = tourney(priced_folder, *JUDGE, "--no-wait", url=waiting_fake.url)
    in_flight_usd = fields(priced_folder, waiting_fake, "plan", "judge")["cost"][
        "in_flight_at_worst_usd"
    ]
    add(priced_folder, SERVED.format(model=MODEL, url=server.url))
    generate = ("apply", "generate", "--yes", "--max-usd", f"{in_flight_usd:.6f}")

    refused = tourney(priced_folder, *generate, url=waiting_fake.url)
    n_asked = len(server.traffic.asked)
    waiting_fake.end_batches()
    waited = tourney(priced_folder, "batch", "wait", url=waiting_fake.url)
    generated = tourney(priced_folder, *generate, url=waiting_fake.url)

    assert (sent.code, refused.code, waited.code, generated.code) == (7, 5, 0, 0), generated.err
    assert "is spent, in flight or perhaps billed, and " in refused.err
    assert (n_asked, len(server.traffic.asked)) == (0, 1)


def test_a_server_that_tells_no_tokens_is_kept_below_the_cap(
    priced_folder: Path, waiting_fake: FakeAnthropic, server: FakeOpenAI
) -> None:
    """Each of its replies counts at its worst; as nothing, all 36 would have been sent."""
    server.traffic.tells_usage = False
    juror = f'provider = "endpoint"\nmodel = "{MODEL}"\nbase_url = "{server.url}"\nmax_tokens = 100'
    add(priced_folder, f'\n[[jury]]\nid = "mine"\n{juror}\n')
    asked = ("apply", "judge", "--judge", "mine", "--yes", "--max-usd", "0.3")

    stopped = tourney(priced_folder, *asked, url=waiting_fake.url)
    n_sent = len(server.traffic.asked)
    again = tourney(priced_folder, *asked, url=waiting_fake.url)

    assert (stopped.code, again.code) == (5, 5), stopped.err
    assert 0 < n_sent == len(server.traffic.asked) < N_QUERIES_OF_ONE_PROMPT
    total = fields(priced_folder, waiting_fake, "project", "spend")["total"]
    assert (total["n_maybe_billed"], total["n_replies"]) == (n_sent, 0)
    assert 0.2 < total["maybe_usd"] <= 0.3


def test_a_pilots_batch_is_told_of_holds_up_nobody_and_is_decided_when_it_is_received(
    priced_folder: Path, waiting_fake: FakeAnthropic
) -> None:
    """By the headline, too: nothing else would say that its pairs are pending."""
    add(priced_folder, PILOT_OF_ONE)
    sent = tourney(priced_folder, *JUDGE, "--mode", "pilot", "--no-wait", url=waiting_fake.url)
    done = tourney(priced_folder, *JUDGE, url=waiting_fake.url, **DIRECT)
    waiting_fake.end_batches()

    received = tourney(priced_folder, *JUDGE, "--no-wait", url=waiting_fake.url)

    assert (sent.code, done.code, received.code) == (7, 0, 0), done.err + received.err
    assert f"a batch to '{PILOT}' is in flight" in done.err
    accounts = fields(priced_folder, waiting_fake, "status", "--judge", PILOT)["accounts"]
    assert [each["pending"] for each in accounts.values()] == [0, 0, 0]


def test_a_batch_in_flight_is_not_forgotten_by_whoever_comes_next(
    priced_folder: Path, waiting_fake: FakeAnthropic
) -> None:
    """Asked one by one, published, or for another tournament, all pairs are still pending."""
    settings = priced_folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8")
    sent = tourney(priced_folder, *JUDGE, "--no-wait", url=waiting_fake.url)

    direct = tourney(priced_folder, *JUDGE, url=waiting_fake.url, **DIRECT)
    settings.write_text(text.replace('"anthropic-batch"', '"anthropic"'), encoding="utf-8")
    run = tourney(priced_folder, "run", "--yes", "--allow-gaps", url=waiting_fake.url)
    settings.write_text(text.replace('id = "paid"', 'id = "second"'), encoding="utf-8")
    paid.record_responses(priced_folder)
    second = tourney(priced_folder, *JUDGE, url=waiting_fake.url)
    settings.write_text(text, encoding="utf-8")
    waiting_fake.end_batches()
    waited = tourney(priced_folder, "batch", "wait", url=waiting_fake.url)
    done = tourney(priced_folder, *JUDGE, url=waiting_fake.url, **DIRECT)

    assert [each.code for each in (sent, direct, run, second, waited, done)] == [7, 7, 7, 7, 0, 0]
    for each in (direct, run):
        assert f"{N_QUERIES_OF_ONE_PROMPT} queries to 'claude-opus-5-5' in batches" in each.err
    assert "`tourney batch wait` receives" in direct.err
    assert not (priced_folder / "runs").exists()
    assert "receive them with the settings of tournament 'paid'" in second.err
    assert len(waiting_fake.bill().paid) == N_QUERIES_OF_ONE_PROMPT


def test_a_refusal_names_the_cap_that_was_said(
    priced_folder: Path, waiting_fake: FakeAnthropic, server: FakeOpenAI
) -> None:
    """What entrants took is told as spent: nobody set what is left of a cap."""
    dear = PRICES.replace("input = 2.0", "input = 2000.0").replace("= 10.0", "= 10000.0")
    (priced_folder / "prices.toml").write_text(dear, encoding="utf-8")
    add(priced_folder, SERVED.format(model=MODEL, url=server.url))
    generate = ("apply", "generate", "--yes", "--max-usd", "9")
    generated = tourney(priced_folder, *generate, url=waiting_fake.url)

    refused = tourney(priced_folder, *JUDGE, "--max-usd", "0.2", url=waiting_fake.url)

    assert (generated.code, refused.code) == (0, 5), refused.err
    assert "the cap is $0.2000" in refused.err
    assert "$0.0000 spent" not in refused.err
    assert "and $0 spent" not in refused.err
    assert " and $0.00 spent" not in refused.err


N_QUERIES: Final = 72  # 2 prompts, 3 dimensions, 6 pairs, both orders
_HEADLINE: Final = {"factuality": 558, "calibration": 858, "clinical_utility": 858}
_PILOT: Final = {"factuality": 192, "calibration": 300, "clinical_utility": 300}


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the first look."""
    with paid.provider() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a tournament of two prompts, answered by four entrants."""
    place = paid.lay_out(tmp_path / "paid", n_prompts=2)
    paid.record_responses(place)
    return place


def matches_by_dimension(run: Path) -> dict[str, int]:
    """Count the matches of a run's artifacts."""
    lines = (run / "matches" / "matches.jsonl").read_text(encoding="utf-8").splitlines()
    return dict(Counter(json.loads(line)["dimension"] for line in lines))


def owed(folder: Path, fake: FakeAnthropic, *words: str) -> dict[str, int]:
    """Return how many queries each dimension owes, as `plan judge` says."""
    done = tourney(folder, "plan", "judge", "--json", *words, url=fake.url)
    assert done.code == 0, done.err
    rows: list[dict[str, Any]] = json.loads(done.out)["rows"]
    return {row["dimension"]: row["n_queries"] for row in rows}


def test_pilot_and_headline_owe_what_the_customers_scripts_ask(
    tmp_path: Path, fake: FakeAnthropic
) -> None:
    """The counts are those of the published protocol."""
    folder = paid.lay_out(tmp_path / "paid")
    paid.record_responses(folder)

    pilot, headline = owed(folder, fake, "--mode", "pilot"), owed(folder, fake)

    assert pilot == {dimension: 2 * n for dimension, n in _PILOT.items()}
    assert headline == {dimension: 2 * n for dimension, n in _HEADLINE.items()}


@pytest.mark.nightly
def test_pilot_and_headline_ask_what_the_customers_scripts_ask(
    tmp_path: Path, fake: FakeAnthropic
) -> None:
    """The counts are those of the published protocol, and every artifact is written."""
    folder = paid.lay_out(tmp_path / "paid")
    paid.record_responses(folder)

    pilot = tourney(folder, "run", "--mode", "pilot", "--yes", url=fake.url)
    n_pilot = len(fake.bill().paid)
    headline = tourney(folder, "run", "--yes", url=fake.url)

    assert (pilot.code, headline.code) == (0, 0), pilot.err + headline.err
    runs = {run.name.partition("_")[0]: run for run in (folder / "runs").iterdir()}
    assert matches_by_dimension(runs["pilot"]) == _PILOT
    assert matches_by_dimension(runs["headline"]) == _HEADLINE
    assert n_pilot == 2 * sum(_PILOT.values())
    assert len(fake.bill().paid) - n_pilot == 2 * sum(_HEADLINE.values())
    for run in runs.values():
        replayed = tourney(folder, "replay", "--against", str(run), url=fake.url)
        assert replayed.code == 0, replayed.err
        names = {str(file.relative_to(run)) for file in run.rglob("*") if file.is_file()}
        assert {f"verdicts/{name}.jsonl" for name in paid.DIMENSIONS} < names
        assert {"manifest.json", "elo_results.json", "elo_per_perm.npz"} < names
        assert {"pairwise_winrates.csv", "battles.jsonl", "elo_ratings.json"} < names
    paid.require_paid_as_recorded(folder, fake.bill())


def test_a_question_is_paid_for_once_however_and_under_whatever_name_it_is_asked(
    folder: Path, fake: FakeAnthropic
) -> None:
    """It is named by its content, and that is all: a corrected gold answer asks its own again."""
    plan = planned(folder, fake)
    assert tourney(folder, *JUDGE, "--limit", "10", url=fake.url, **DIRECT).code == 0
    n_direct = len(fake.bill().paid)
    assert tourney(folder, *JUDGE, url=fake.url).code == 0

    assert n_direct == 10
    assert len(fake.bill().paid) == len(paid.verdicts_in(folder)) == N_QUERIES
    assert plan["is_measured"] is False
    assert spent(folder, fake) < plan["worst_usd"]

    settings = folder / "tournament.toml"
    before = settings.read_text(encoding="utf-8")
    renamed = [("baseline", "base"), *((name, name) for name in reversed(paid.ENTRANTS[1:]))]
    text = paid.settings(entrants=tuple(renamed)).replace('id = "paid"', 'id = "another"')
    settings.write_text(text, encoding="utf-8")
    assert set(owed(folder, fake).values()) == {0}
    assert tourney(folder, "apply", "judge", url=fake.url).code == 0
    assert len(fake.bill().paid) == N_QUERIES

    settings.write_text(before, encoding="utf-8")
    bank = folder / "bank.jsonl"
    first, *others = bank.read_text(encoding="utf-8").splitlines()
    corrected = {**json.loads(first), "gold_answer": "quite another"}
    bank.write_text("\n".join([json.dumps(corrected), *others]) + "\n", encoding="utf-8")
    assert owed(folder, fake) == {"factuality": 12, "calibration": 0, "clinical_utility": 0}


@pytest.mark.nightly
def test_a_pilot_by_another_model_and_a_few_of_the_headlines_replies_are_near_the_bill(
    tmp_path: Path, fake: FakeAnthropic
) -> None:
    """What another model thinks before it writes shows in its own replies only."""
    folder = paid.lay_out(tmp_path / "paid", n_prompts=60)
    paid.record_responses(folder)
    with_pilot = (folder / "tournament.toml").read_text(encoding="utf-8") + "\n[pilot]\nsize = 20\n"
    (folder / "tournament.toml").write_text(with_pilot, encoding="utf-8")
    judge = ("apply", "judge", "--yes")
    assert tourney(folder, *judge, "--mode", "pilot", url=fake.url).code == 0
    guessed = planned(folder, fake)
    assert tourney(folder, *judge, "--limit", "108", url=fake.url).code == 0
    before = spent(folder, fake)

    plan = planned(folder, fake)
    assert tourney(folder, *judge, url=fake.url).code == 0

    assert (guessed["is_measured"], plan["is_measured"]) == (False, True)
    assert plan["expected_usd"] == pytest.approx(spent(folder, fake) - before, rel=0.1)


def planned(folder: Path, fake: FakeAnthropic) -> dict[str, Any]:
    """Return what `plan judge` says of the money, asked as the settings say."""
    done = tourney(folder, "plan", "judge", "--json", url=fake.url)
    assert done.code == 0, done.err
    cost: dict[str, Any] = json.loads(done.out)["cost"]
    (chosen,) = (way for way in cost["ways"] if way["is_chosen"])
    return {**cost, **chosen}


def spent(folder: Path, fake: FakeAnthropic) -> float:
    """Return the dollars that `project spend` adds up."""
    done = tourney(folder, "project", "spend", "--json", url=fake.url)
    assert done.code == 0, done.err
    return float(json.loads(done.out)["total"]["usd"])


@pytest.mark.parametrize(
    ("options", "more", "code", "said"),
    [
        ("--yes --max-usd 0.01", {}, 5, "$0.01"),
        ("--yes --max-usd 9", {"TOURNEY_JUDGE_MAX_USD": "0.01"}, 5, "$0.01"),
        ("", {}, 5, "--yes"),
        ("--yes", {"ANTHROPIC_API_KEY": ""}, 4, "ANTHROPIC_API_KEY"),
    ],
    ids=["a cap", "a lower cap in the settings", "no terminal to agree at", "no key"],
)
def test_what_nobody_agreed_to_or_can_be_paid_is_not_sent(
    priced_folder: Path,
    fake: FakeAnthropic,
    options: str,
    more: dict[str, str],
    code: int,
    said: str,
) -> None:
    """Before anything is asked, and with the remedy."""
    done = tourney(priced_folder, "apply", "judge", *options.split(), url=fake.url, **more)

    assert done.code == code
    assert said in done.err
    assert not fake.bill().posts


def test_a_run_need_not_wait_for_its_batches(folder: Path) -> None:
    """Each time it receives what has ended and sends what is open; the last time it publishes."""
    run = ("run", "--yes", "--no-wait")
    with paid.provider(n_looks=None) as fake:
        sent = tourney(folder, *run, url=fake.url)
        waiting = tourney(folder, *run, url=fake.url)
        nobody = tourney(folder, "batch", "wait", "nobody", url=fake.url)
        standing = tourney(folder, "status", url=fake.url)
        fake.end_batches()
        done = tourney(folder, *run, url=fake.url)

    assert (sent.code, waiting.code, nobody.code, done.code) == (7, 7, 2, 0), done.err
    assert "recorded here: msgbatch_" in nobody.err
    assert f"{N_QUERIES} requests to claude-opus-5-5 are in flight" in standing.out
    assert f"{N_QUERIES} requests in 1 batch with the provider" in waiting.err
    assert "published in" in done.err
    assert len([*(folder / "runs").iterdir()]) == 1
