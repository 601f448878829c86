"""Answers of evaluations scored by a paid judge, from the plan to the table: nothing paid twice."""

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from commands.asking.pool import Pool
from commands.backends.anthropic.batches import AnthropicBatches
from commands.batching.sending import fitting_prefix
from commands.judging.judge import Receipts
from ledger.events.judging import JudgeQueryFailed, ScoreReceived, ScoreShared
from ledger.identity import Digest
from ledger.store import Ledger
from tests.providers.anthropic.exchange import Shares
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.builders.commands import record, write_bank, write_rubric
from tests.support.command_line import paid
from tests.support.command_line.settled import events_in
from tests.support.command_line.warm import Ended
from tests.support.faults.death import Death, before

N_QUESTIONS: Final = 4
N_ALIKE: Final = 1  # of them both entrants answer in the same words
N_ANSWERS: Final = 2 * N_QUESTIONS
N_QUERIES: Final = N_ANSWERS - N_ALIKE
EVALUATE: Final = ("apply", "evaluate", "--yes")

SETTINGS: Final = """\
[tournament]
id = "paid"

[judge]
provider = "{provider}"
model = "{model}"
cache = "off"
{judge}
[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"

[[evaluations]]
id = "doses"
uses = "rollout"
parameters = {{ file = "doses.jsonl" }}
rubric = "rubrics/doses.md"
"""
ENTRANT: Final = """
[[entrants]]
id = "{name}"
loader = "endpoint"
model = "{name}"
base_url = "{url}"
"""


def say(body: Json) -> Said:
    """Answer the first questions in the same words, and the others in one's own."""
    asked, model = str(body["messages"]), body["model"]
    number = next(n for n in range(N_QUESTIONS) if f"dose {n}?" in asked)
    return Said("Two grams." if number < N_ALIKE else f"{number} grams, says {model}.")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    """Give the server of two entrants."""
    with FakeOpenAI(say) as fake:
        fake.traffic.models = frozenset({"small", "large"})
        yield fake


@pytest.fixture
def folder(tmp_path: Path, server: FakeOpenAI) -> Path:
    """Give a tournament of two entrants behind a server, with an evaluation that is judged."""
    return lay_out(tmp_path / "judged", server)


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the second look."""
    with paid.provider(n_looks=2) as fake:
        yield fake


class Scored(NamedTuple):
    """A tournament whose answers were all scored, what was planned before, and by whom."""

    folder: Path
    planned: Sequence[Mapping[str, Any]]
    fake: FakeAnthropic


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory, server: FakeOpenAI) -> Iterator[Scored]:
    """Give one to be read, or copied."""
    folder = lay_out(tmp_path_factory.mktemp("scored") / "judged", server)
    planned = fields(folder, "plan", "evaluate")["scores"]
    with paid.provider(n_looks=2) as fake:
        require_done(folder, fake)
        yield Scored(folder, planned, fake)


def lay_out(folder: Path, server: FakeOpenAI, **judge: str) -> Path:
    """Write the settings, with some of the judge's, and all that they name."""
    folder.mkdir()
    how = {"provider": "anthropic-batch", "model": paid.JUDGE, "judge": "", **judge}
    entrants = (ENTRANT.format(name=name, url=server.url) for name in ("small", "large"))
    text = SETTINGS.format(**how) + "".join(entrants)
    (folder / "tournament.toml").write_text(text, encoding="utf-8")
    write_bank(folder / "bank.jsonl", [record("p1")])
    questions = ({"question": f"Which dose {n}?", "answer": "2"} for n in range(N_QUESTIONS))
    write_bank(folder / "doses.jsonl", questions)
    write_rubric(folder / "rubrics" / "factuality.md")
    write_rubric(folder / "rubrics" / "doses.md", front="needs_gold = true\nscore = [0, 10]")
    return folder


def evaluate(folder: Path, fake: FakeAnthropic, *words: str) -> Ended:
    """Evaluate, and have the answers scored."""
    return paid.tourney(folder, *EVALUATE, *words, url=fake.url)


def scores_in(folder: Path) -> dict[Digest, float]:
    """Return the scores on record, by query."""
    return {each.query_key: each.score for each in events_in(folder, ScoreReceived)}


def fields(folder: Path, *words: str) -> Mapping[str, Any]:
    """Return what a reading command says as data."""
    done = paid.tourney(folder, *words, "--json", url="http://127.0.0.1:9")
    assert done.code in {0, 6}, done.err
    said: dict[str, Any] = json.loads(done.out)
    return said


def judged(folder: Path) -> dict[str, Any]:
    """Return the row of the judge's score, by entrant."""
    rows = fields(folder, "project", "metrics")["rows"]
    return {row["entrant"]: row for row in rows if row["metric"] == "judged"}


def require_done(folder: Path, fake: FakeAnthropic, *words: str) -> None:
    """Run to the end; every answer has a score, and was paid once."""
    paid.hear_out(fake)
    done = evaluate(folder, fake, *words)

    assert done.code == 0, done.err
    bill = fake.bill()
    paid.require_paid_as_recorded(folder, bill)
    assert len(scores_in(folder)) == len(bill.paid) == N_QUERIES
    assert {row["n"] for row in judged(folder).values()} == {N_QUESTIONS}


def require_no_more_is_owed(folder: Path, fake: FakeAnthropic) -> None:
    """Run again: nothing is paid, and verify finds no fault."""
    again = evaluate(folder, fake)
    assert again.code == 0, again.err
    assert len(fake.bill().paid) == N_QUERIES
    verified = paid.tourney(folder, "verify", url=fake.url)
    assert "0 faults" in verified.out, verified.err


def test_equal_answers_are_scored_once_and_count_for_both(scored: Scored) -> None:
    """The plan says what is owed; the table shows the mean, and the samples the replies."""
    folder = scored.folder

    assert [(each["n_queries"], each["n_waiting"]) for each in scored.planned] == [(0, N_ANSWERS)]
    after_it = fields(folder, "plan", "evaluate")["scores"]
    assert [(each["n_queries"], each["n_waiting"]) for each in after_it] == [(0, 0)]
    require_no_more_is_owed(folder, scored.fake)
    rows = fields(folder, "project", "metrics", "--samples", "all")["rows"]
    assert Counter(row["reply"] is not None for row in rows) == {True: N_ANSWERS}
    assert len({row["entrant"] for row in rows}) == 2
    alike = [row["judged"] for row in rows if row["answered"] == "Two grams."]
    assert len(alike) == 2 * N_ALIKE
    for name, row in judged(folder).items():
        own = [each["judged"] for each in rows if each["entrant"] == name]
        assert row["value"] == pytest.approx(sum(own) / N_QUESTIONS)


@pytest.mark.nightly
def test_scores_are_read_from_a_schema_too(
    tmp_path: Path, server: FakeOpenAI, fake: FakeAnthropic
) -> None:
    """As from the last line of a reply."""
    require_done(lay_out(tmp_path / "judged", server, judge='protocol = "schema"'), fake)


def test_spending_on_scores_is_the_tournaments(scored: Scored) -> None:
    """By judge and evaluation; the same bill as the provider's."""
    folder = scored.folder

    paid.require_spent_as_billed(folder, scored.fake.bill())
    asked = "SELECT sum(usd) AS usd FROM spend WHERE role = 'judge'"
    assert fields(folder, "sql", asked)["rows"] == [
        {"usd": pytest.approx(paid.spend_in(folder).usd)}
    ]
    rows = fields(folder, "project", "spend")["rows"]
    assert {(row["judge"], row["dimension"]) for row in rows} == {(paid.JUDGE, "doses")}


def test_a_cap_stops_before_the_next_answer(folder: Path, fake: FakeAnthropic) -> None:
    """What is in flight and what was spent count; the rest is asked under a higher cap."""
    refused = evaluate(folder, fake, "--max-usd", "0.0001")
    n_paid = len(fake.bill().paid)
    planned = fields(folder, "plan", "evaluate")["scores"]

    assert refused.code == 5, refused.err
    assert [(each["n_queries"], each["n_unscored"]) for each in planned] == [(N_QUERIES, 0)]
    assert "the cap is $0.0001" in refused.err
    assert n_paid == 0
    require_done(folder, fake, "--max-usd", "50")


def test_scores_in_flight_are_not_owed_and_not_done_either(folder: Path) -> None:
    """A plan beside them would else offer to pay again, or say that all is scored."""
    with paid.provider(n_looks=None) as fake:
        sent = evaluate(folder, fake, "--no-wait")
        planned = fields(folder, "plan", "evaluate")["scores"]

    assert sent.code == 7, sent.err
    assert [(each["n_queries"], each["n_unscored"]) for each in planned] == [(0, N_QUERIES)]


@pytest.mark.parametrize(
    "death",
    [
        pytest.param(before(fitting_prefix), marks=pytest.mark.nightly),
        before(AnthropicBatches.results, call=N_QUERIES // 2),
        pytest.param(before(Receipts.receipt, call=N_QUERIES), marks=pytest.mark.nightly),
        *(pytest.param(Death(n), marks=pytest.mark.nightly) for n in range(50, 800, 50)),
    ],
    ids=str,
)
def test_killed_on_the_way_scores_are_paid_once(
    folder: Path, fake: FakeAnthropic, death: Death
) -> None:
    """The same command run again goes on where the last died."""
    killed = paid.command(folder, *EVALUATE, url=fake.url, death=death).wait()

    assert killed.code == -signal.SIGKILL, killed.err
    require_done(folder, fake)
    require_no_more_is_owed(folder, fake)


@pytest.mark.parametrize(
    "death",
    [
        pytest.param(before(Pool._send, call=6), marks=pytest.mark.nightly),
        before(Receipts.receipt, call=4),
    ],
    ids=str,
)
def test_killed_while_answers_are_sent_one_by_one(
    tmp_path: Path, server: FakeOpenAI, fake: FakeAnthropic, death: Death
) -> None:
    """What may have been billed twice is told of, and counts against the cap."""
    folder = lay_out(tmp_path / "judged", server, provider="anthropic")

    killed = paid.command(folder, *EVALUATE, url=fake.url, death=death).wait()
    done = evaluate(folder, fake)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    failed = events_in(folder, JudgeQueryFailed)
    lost = Counter(each.query_key for each in failed if each.fate == "perhaps billed")
    assert set(lost.values()) <= {1}
    assert len(scores_in(folder)) == N_QUERIES
    assert len(fake.bill().paid) - N_QUERIES <= lost.total() <= 8


def test_an_unreadable_reply_is_no_score_and_is_asked_again_on_demand(
    folder: Path, fake: FakeAnthropic
) -> None:
    """It was paid for; --retry opens it again, and says nothing of other answers."""
    fake.inject(shares=Shares(unreadable=1.0))
    first = evaluate(folder, fake)
    fake.clear()
    second = evaluate(folder, fake)
    planned = paid.tourney(folder, "plan", "evaluate", url=fake.url).out
    failures = fields(folder, "sql", "SELECT DISTINCT failed FROM failures")
    third = evaluate(folder, fake, "--retry", "unreadable")

    assert (first.code, second.code, third.code) == (6, 6, 0), third.err
    assert (
        f"{N_QUERIES} of {N_QUERIES} answered queries to {paid.JUDGE!r} got no readable score"
        in first.err
    )
    assert "tourney apply evaluate --retry unreadable" in first.err
    assert f"{N_QUERIES} answers got no score" in second.err
    assert f"{N_QUERIES} answers without a score by {paid.JUDGE}" in planned
    assert "has scored every answer" not in planned
    assert failures["rows"] == [{"failed": "score"}]
    assert len(scores_in(folder)) == N_QUERIES
    paid.require_paid_as_recorded(folder, fake.bill())


def test_a_later_entrant_shares_the_scores_of_equal_answers(
    folder: Path, fake: FakeAnthropic
) -> None:
    """Nothing is asked about them again; it is recorded that they are scored."""
    first = evaluate(folder, fake, "--entrant", "small")
    n_before = len(fake.bill().paid)

    assert (first.code, n_before) == (0, N_QUESTIONS), first.err
    require_done(folder, fake)
    (shared,) = events_in(folder, ScoreShared)[:1]
    assert len(events_in(folder, ScoreShared)) == N_ALIKE
    assert len(shared.samples) == 1


def test_a_redacted_reply_leaves_its_score(scored: Scored, tmp_path: Path) -> None:
    """The text is gone for good; nothing is asked again, and verify finds no fault."""
    folder, fake = shutil.copytree(scored.folder, tmp_path / "copy"), scored.fake
    means = judged(folder)
    with Ledger.read_only(folder / "tournament.db") as ledger:
        places = [each.position for each in ledger.read(types=["ScoreReceived", "SampleObserved"])]
    for place in (places[0], places[-1]):
        done = paid.tourney(folder, "redact", str(place), "--why", "a name", "--yes", url=fake.url)
        assert done.code == 0, done.err

    require_no_more_is_owed(folder, fake)
    assert judged(folder) == means


def test_a_judge_without_a_key_is_found_out_before_answers_are_generated(
    folder: Path, server: FakeOpenAI
) -> None:
    """They would be paid for, and then nobody could score them."""
    server.traffic.asked.clear()
    done = paid.tourney(folder, *EVALUATE, url="http://127.0.0.1:9", ANTHROPIC_API_KEY="")

    assert done.code == 4, done.err
    assert not server.traffic.asked
