"""A process that is killed anywhere loses nothing recorded, and pays for nothing twice.

The provider is a process of its own, so it goes on when its client is killed, and its bill is read
at the end: every paid reply must be on the ledger, and be the only one for its query.
"""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import fsum
from pathlib import Path
from typing import Final

import pytest

from commands.asking.pool import Pool
from commands.backends.anthropic.batches import AnthropicBatches
from commands.cli.shared.workspace import workspace
from commands.entrants import generate
from commands.judging.judge import Receipts
from commands.spending.endpoints import LedgerBilling
from ledger.events.judging import JudgeBatchPlanned, JudgeQueryFailed
from ledger.identity import Digest
from projections.tournament.matches import planned_responses
from tests.providers.anthropic.exchange import Fault, Shares
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import MODEL, PRICES, FakeOpenAI, Said
from tests.support.command_line import paid
from tests.support.command_line.killing import held_by, kill
from tests.support.command_line.launching import change, launch
from tests.support.command_line.settled import events_in, fields
from tests.support.command_line.warm import MOST_QUERIES, begin, run_warm
from tests.support.faults.death import Death, before
from tests.support.patience import PATIENCE_S


@pytest.fixture
def undisturbed(place: Path, tmp_path: Path) -> Path:
    """Give a second folder, the same two entrants, whose run nobody disturbs."""
    settings = place / "tournament.toml"
    change(settings, "batch_tokens = 2048", "batch_tokens = 400")
    text = settings.read_text(encoding="utf-8")
    head, plain, alone, *_, last = text.split("[[entrants]]")
    two = f"{head}[[entrants]]{plain}[[entrants]]{alone}"
    settings.write_text(two + last[last.index("[[rubrics]]") :], encoding="utf-8")
    return shutil.copytree(place, tmp_path / "undisturbed")


@pytest.mark.parametrize("n_kills", [1, pytest.param(10, marks=pytest.mark.nightly)])
def test_killed_again_and_again_a_run_ends_as_if_undisturbed(
    place: Path, undisturbed: Path, n_kills: int
) -> None:
    """Same responses, verdicts and outcomes; nothing twice; the chain intact."""
    assert launch(undisturbed, "run").returncode == 0

    death = before(generate._results, call=3)  # two batches are recorded
    assert (
        begin(place, ("apply", "generate"), os.environ, death=death).wait().code == -signal.SIGKILL
    )
    kill(place, "apply", "generate", n_kills=n_kills - 1, furthest=60)
    assert launch(place, "apply", "generate").returncode == 0
    kill(place, "apply", "judge", n_kills=n_kills, furthest=60)
    assert launch(place, "apply", "judge").returncode == 0

    found, expected = held_by(place / "tournament.db"), held_by(undisturbed / "tournament.db")
    assert found.responses == expected.responses
    assert found.verdicts == expected.verdicts
    assert found.outcomes == expected.outcomes
    assert expected.n_by_type - found.n_by_type == Counter(RatingsPublished=1)
    assert not found.n_by_type - expected.n_by_type


N_QUERIES: Final = 72  # 2 prompts, 3 dimensions, 6 pairs, both orders
JUDGE: Final = ("apply", "judge", "--yes")
ROUNDING_USD: Final = 1e-9


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tournament of two prompts, answered by four entrants, in batches of 25."""
    monkeypatch.setenv(MOST_QUERIES, "25")
    place = paid.lay_out(tmp_path / "paid", n_prompts=2, judge={"cache": "off"})
    paid.record_responses(place)
    return place


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the second look."""
    with paid.provider(n_looks=2) as fake:
        yield fake


def require_killed(folder: Path, fake: FakeAnthropic, death: Death) -> None:
    """Judge, and die on the way."""
    ended = paid.command(folder, *JUDGE, url=fake.url, death=death).wait()
    assert ended.code == -signal.SIGKILL, ended.err


def require_done(folder: Path, fake: FakeAnthropic, *, n_paid: int = N_QUERIES) -> None:
    """Run to the end; everything has a verdict, and was paid once."""
    paid.hear_out(fake)
    done = paid.tourney(folder, *JUDGE, url=fake.url)

    assert done.code == 0, done.err
    bill = fake.bill()
    paid.require_paid_as_recorded(folder, bill)
    paid.require_spent_as_billed(folder, bill)
    assert len(paid.verdicts_in(folder)) == N_QUERIES
    assert len(bill.paid) == n_paid


def test_killed_after_the_intent_and_before_the_request(folder: Path, fake: FakeAnthropic) -> None:
    """The plan is on the ledger, and no such batch exists: it is sent anew."""
    require_killed(folder, fake, before(AnthropicBatches.create))

    assert events_in(folder, JudgeBatchPlanned)
    assert not fake.bill(settle=False).batches
    require_done(folder, fake)


def test_killed_after_the_provider_accepted_and_before_it_answered(
    folder: Path, fake: FakeAnthropic
) -> None:
    """The batch runs, and is billed, and only the provider knows its name: it is found."""
    fake.inject(Fault(endpoint="batches.create", kind="late", delay_s=PATIENCE_S))
    process = paid.command(folder, *JUDGE, url=fake.url)
    process.until(lambda: len(fake.bill(settle=False).batches) == 1)
    process.kill()
    fake.clear()

    require_done(folder, fake)


@pytest.mark.nightly
def test_killed_while_polling(folder: Path) -> None:
    """The batches are known, and are waited for by whoever comes next."""
    with paid.provider(n_looks=None) as fake:
        process = paid.command(folder, *JUDGE, url=fake.url)
        process.until(lambda: "batches.retrieve" in endpoints(fake))
        process.kill()
        fake.end_batches()

        require_done(folder, fake)


def test_killed_in_the_middle_of_the_results(folder: Path, fake: FakeAnthropic) -> None:
    """What was read is kept, and the rest is read again at no cost."""
    death = before(AnthropicBatches.results, call=N_QUERIES // 2)
    require_killed(folder, fake, death)

    assert 0 < len(paid.verdicts_in(folder)) < N_QUERIES // 2
    require_done(folder, fake)


def endpoints(fake: FakeAnthropic) -> list[str | None]:
    """Return what the provider was asked for."""
    return [call.endpoint for call in fake.bill(settle=False).calls]


def fault(endpoint: str, kind: str, **more: float) -> Fault:
    """Return a fault that happens twice."""
    return Fault(endpoint=endpoint, kind=kind, n=2, retry_after_s=0.05, **more)  # type: ignore[arg-type]  # as parametrised


def by_night(endpoint: str, kind: str) -> object:
    """Return one that resembles another, and is tried by night."""
    return pytest.param(fault(endpoint, kind), marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    "trouble",
    [
        fault("batches.create", "cut_after"),
        by_night("batches.results", "cut_quietly"),
        by_night("batches.create", "cut_half"),
        by_night("batches.retrieve", "cut_before"),
        by_night("batches.list", "server_error"),
        by_night("batches.create", "error_after"),
        by_night("batches.create", "rate_limited"),
        by_night("batches.results", "cut_half"),
        by_night("batches.results", "server_error"),
        by_night("batches.results", "cut_before"),
        by_night("batches.retrieve", "server_error"),
        by_night("batches.retrieve", "rate_limited"),
        by_night("batches.create", "overloaded"),
        by_night("batches.create", "server_error"),
        by_night("batches.create", "cut_before"),
    ],
    ids=lambda trouble: f"{trouble.endpoint}-{trouble.kind}",
)
def test_trouble_with_the_provider_costs_nothing_twice(
    folder: Path, fake: FakeAnthropic, trouble: Fault
) -> None:
    """Whether one command gets over it or the next one does."""
    fake.inject(trouble)
    first = paid.tourney(folder, *JUDGE, url=fake.url)

    assert first.code in {0, 1, 6}, first.err
    require_done(folder, fake)


def test_failures_by_reason_are_counted_and_asked_again_where_it_can_help(
    folder: Path, fake: FakeAnthropic
) -> None:
    """Some for each reason; what was paid for in vain is on the ledger too."""
    share = 0.1
    fake.inject(
        shares=Shares(
            errored=share, expired=share, refused=share, truncated=share, unreadable=share
        )
    )
    first = paid.tourney(folder, *JUDGE, url=fake.url)
    fake.clear()
    second = paid.tourney(folder, *JUDGE, url=fake.url)

    bill, verdicts = fake.bill(), paid.verdicts_in(folder)
    without = {key: reasons for key, reasons in failures_in(folder).items() if key not in verdicts}
    paid.require_paid_as_recorded(folder, bill)
    paid.require_spent_as_billed(folder, bill)
    assert first.code == second.code == 6, second.err
    assert len(verdicts) + len(without) == N_QUERIES
    assert {tuple(reasons) for reasons in without.values()} == {
        ("refused",),
        ("truncated",),
        ("unreadable", "unreadable"),
    }
    assert {"errored", "expired"} <= bill.n_by_outcome.keys()


def failures_in(folder: Path) -> dict[Digest, list[str]]:
    """Return why queries have no verdict, attempt by attempt."""
    reasons: dict[Digest, list[str]] = {}
    for each in events_in(folder, JudgeQueryFailed):
        reasons.setdefault(each.query_key, []).append(each.reason)
    return reasons


@pytest.mark.nightly
def test_killed_at_random_steps_a_judge_is_paid_once(
    tmp_path: Path, fake: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the step, the ledger and the bill agree in the end."""
    monkeypatch.setenv(MOST_QUERIES, "4")
    folder = paid.lay_out(tmp_path / "killed", n_prompts=2, judge={"cache": "off"})
    paid.record_responses(folder)
    for name, text in paid.environment(fake.url).items():
        monkeypatch.setenv(name, text)

    kill(folder, *JUDGE, n_kills=50, furthest=150, after_each=partial(paid.hear_out, fake))

    require_done(folder, fake)


DIRECT: Final = {"TOURNEY_JUDGE_PROVIDER": "anthropic"}


def by_night_at(death: Death) -> object:
    """Return a death that is tried by night."""
    return pytest.param(death, marks=pytest.mark.nightly)


def direct_kills(furthest: int) -> list[object]:
    """Return where to be killed while queries are sent one by one; nightly, everywhere."""
    return [
        before(Receipts.receipt, call=20),  # answered, and not recorded
        by_night_at(before(Pool._send, call=30)),  # recorded as sent, and perhaps not sent
        *(by_night_at(Death(n)) for n in range(40, furthest, 40)),
    ]


def perhaps_billed(folder: Path) -> Counter[Digest]:
    """Return how many requests were perhaps billed, by query."""
    failures = events_in(folder, JudgeQueryFailed)
    return Counter(each.query_key for each in failures if each.fate == "perhaps billed")


@pytest.mark.parametrize("death", direct_kills(1200), ids=str)
def test_killed_while_queries_are_sent_one_by_one(
    folder: Path, fake: FakeAnthropic, death: Death
) -> None:
    """What is billed twice is told of: at most the eight requests that were under way."""
    killed = paid.command(folder, *JUDGE, url=fake.url, death=death, **DIRECT).wait()
    done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    bill, lost = fake.bill(), perhaps_billed(folder)
    n_again = sum(n - 1 for n in bill.n_paid_by_digest.values())
    assert len(bill.n_paid_by_digest) == len(paid.verdicts_in(folder)) == N_QUERIES
    assert n_again <= lost.total() <= 8
    assert set(lost.values()) <= {1}
    recorded, billed = paid.usages_in(folder), Counter(map(paid.usage_of, bill.paid))
    assert not recorded - billed
    assert (billed - recorded).total() == n_again
    usd = paid.usd_of(recorded.elements(), in_batch=False)
    assert paid.spend_in(folder).usd == pytest.approx(usd, abs=ROUNDING_USD)


@pytest.mark.parametrize(
    "death",
    [
        Death(300),
        *(by_night_at(Death(n)) for n in range(100, 1200, 100)),
    ],
    ids=str,
)
def test_killed_under_a_cap_a_judges_bill_stays_below_it(
    folder: Path, fake: FakeAnthropic, death: Death
) -> None:
    """What was under way at the kill counts at its worst, also for the next command."""
    capped = (*JUDGE, "--max-usd", "2.5")  # for 72 queries of at most $0.115
    killed = paid.command(folder, *capped, url=fake.url, death=death, **DIRECT).wait()
    done = paid.tourney(folder, *capped, url=fake.url, **DIRECT)

    assert killed.code == -signal.SIGKILL, killed.err
    assert done.code in {0, 5}, done.err  # 5: no further query is sure to stay below it
    billed_usd = paid.usd_of(map(paid.usage_of, fake.bill().paid), in_batch=False)
    total = paid.spend_in(folder)
    assert 0.0 < total.usd <= billed_usd + ROUNDING_USD
    assert billed_usd <= total.usd + total.maybe_usd + ROUNDING_USD <= 2.5


@pytest.mark.parametrize("death", direct_kills(900), ids=str)
def test_killed_while_an_endpoint_judges(folder: Path, death: Death) -> None:
    """The same, at a server of another maker."""
    with FakeOpenAI() as server:
        served = {"provider": "endpoint", "base_url": server.url, "model": MODEL}
        settings = paid.settings(judge={**served, "prices": "prices.toml"})
        text = settings.replace('provider = "anthropic-batch"\n', "")
        (folder / "tournament.toml").write_text(text, encoding="utf-8")
        (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
        killed = begin(folder, JUDGE, os.environ, death=death).wait()
        done = run_warm(folder, JUDGE, os.environ)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    asked, lost = Counter(map(str, server.traffic.asked)), perhaps_billed(folder)
    assert len(asked) == len(paid.verdicts_in(folder)) == N_QUERIES
    assert asked.total() - N_QUERIES <= lost.total() <= 8
    once = {str(body): server.usd_of(body) for body in server.traffic.asked}
    assert paid.spend_in(folder).usd == pytest.approx(fsum(once.values()), abs=ROUNDING_USD)


SERVED: Final = """
[[entrants]]
id = "{name}"
loader = "endpoint"
model = "{model}"
base_url = "{url}"
temperature = {temperature}
concurrency = 8
"""
N_SERVED: Final = 2 * 12  # entrants, prompts
GENERATE: Final = ("apply", "generate", "--yes")


@pytest.fixture
def maker() -> Iterator[FakeOpenAI]:
    """Give a server of entrants that answers each in its own words."""
    with FakeOpenAI(lambda body: Said(f"At {body['temperature']}: {body['messages']}")) as maker:
        yield maker


@pytest.fixture
def served(tmp_path: Path, maker: FakeOpenAI) -> Path:
    """Give a tournament of two entrants at a server, whose model has a price."""
    folder = paid.lay_out(tmp_path / "served", n_prompts=N_SERVED // 2)
    tables = (
        SERVED.format(name=f"at_{n}", model=MODEL, url=maker.url, temperature=f"0.{n}")
        for n in (3, 7)
    )
    text = paid.settings(entrants=(), judge={"prices": "prices.toml"})
    (folder / "tournament.toml").write_text(text + "".join(tables), encoding="utf-8")
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    return folder


def entrant_kills(furthest: int) -> list[object]:
    """Return where to be killed while entrants are asked; nightly, everywhere."""
    return [
        before(LedgerBilling.settle, call=5),  # answered, and not recorded
        by_night_at(before(Pool._send, call=15)),  # recorded as sent, and perhaps not sent
        *(by_night_at(Death(n)) for n in range(30, furthest, 30)),
    ]


def bills_in(folder: Path, maker: FakeOpenAI) -> dict[Digest, list[float]]:
    """Return what the server bills for each response, request by request."""
    state = workspace(folder / "tournament.toml", None)
    with state.recorder(print) as recorder:
        bank = [prompt.prompt_id for prompt in recorder.state.bank]
        cells = planned_responses(recorder.state, bank)
    keys = {(each.entrant.temperature, each.prompt.text): each.response_key for each in cells}
    bills: dict[Digest, list[float]] = {}
    for body in maker.traffic.asked:
        key = keys[body["temperature"], body["messages"][0]["content"]]  # type: ignore[index]  # a chat, as sent
        bills.setdefault(key, []).append(maker.usd_of(body))
    return bills


def require_all_told(folder: Path, maker: FakeOpenAI) -> tuple[float, float]:
    """Compare the bill with the ledger, request by request; return dollars spent and at risk.

    An answer on record cost what it is billed for; each further one was perhaps billed.
    """
    charges = paid.charges_in(folder)
    lost = [each for each in charges if each.fate == "perhaps billed"]
    answered = [each for each in charges if each.fate == "answered"]
    n_lost = Counter(each.request for each in lost)
    spent = {each.request: each.usd for each in answered}
    bills = bills_in(folder, maker)
    assert len(spent) == len(answered)
    assert {key: bills[key][0] for key in spent} == pytest.approx(spent, abs=1e-12)
    assert not [key for key, bill in bills.items() if len(bill) - (key in spent) > n_lost[key]]
    spent_usd, lost_usd = (fsum(each.usd or 0.0 for each in part) for part in (answered, lost))
    assert maker.billed_usd <= spent_usd + lost_usd + ROUNDING_USD
    (*rows,) = fields(launch(folder, "project", "spend", "--json"))["entrants"]
    assert fsum(row["usd"] for row in rows) == pytest.approx(spent_usd, abs=ROUNDING_USD)
    assert fsum(row["maybe_usd"] for row in rows) == pytest.approx(lost_usd, abs=ROUNDING_USD)
    return spent_usd, lost_usd


@pytest.mark.parametrize("death", entrant_kills(400), ids=str)
def test_killed_while_entrants_are_asked(served: Path, maker: FakeOpenAI, death: Death) -> None:
    """All answer in the end; what is billed twice is told of, at most the eight under way."""
    killed = begin(served, GENERATE, os.environ, death=death).wait()
    done = run_warm(served, GENERATE, os.environ)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    require_all_told(served, maker)
    fates = Counter(each.fate for each in paid.charges_in(served))
    assert fates["answered"] == N_SERVED
    assert len(maker.traffic.asked) - N_SERVED <= fates["perhaps billed"] <= 8


@pytest.mark.parametrize("death", [*entrant_kills(300)[:1], *entrant_kills(300)[2:]], ids=str)
def test_killed_under_a_cap_the_bill_stays_below_it(
    served: Path, maker: FakeOpenAI, death: Death
) -> None:
    """What was under way at the kill counts at its worst, also for the next command."""
    capped = (*GENERATE, "--max-usd", "0.0125")
    killed = begin(served, capped, os.environ, death=death).wait()
    done = run_warm(served, capped, os.environ)

    assert killed.code == -signal.SIGKILL
    assert done.code in {0, 5}, done.err  # 5: no further request is sure to stay below it
    spent_usd, lost_usd = require_all_told(served, maker)
    assert maker.billed_usd <= spent_usd + lost_usd <= 0.025
