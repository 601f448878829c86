"""One request for all dimensions: what it costs, what it owes, and what one reply lacks."""

import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from math import fsum
from pathlib import Path
from typing import Final

import pytest

from commands.backends.anthropic.batches import AnthropicBatches
from commands.cli.shared.workspace import workspace
from commands.judging.judge import Receipts
from commands.judging.plan import JudgingOptions, plan_judging
from commands.judging.session import judge_with_consent
from commands.ports import Console, no_progress
from commands.spending.budget import SpendingOptions
from ledger.auditing.audit import audit
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.tournament.matches import PlannedResponse
from tests.providers.anthropic.messages import Reply, judge
from tests.providers.anthropic.prompt import Params
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.command_line import paid
from tests.support.command_line.warm import MOST_QUERIES, Ended
from tests.support.faults.death import Death, before
from tests.support.scripted import ScriptedBackends, ScriptedJudge

N_REQUESTS: Final = 24  # 2 prompts, 6 pairs, both orders
N_QUERIES: Final = 3 * N_REQUESTS
JUDGE: Final = ("apply", "judge", "--yes")
DIRECT: Final = {"TOURNEY_JUDGE_PROVIDER": "anthropic"}
TOGETHER: Final = "\n[judging]\ntogether = true\n"


def lay_out(
    folder: Path,
    further: str = TOGETHER,
    text_of: Callable[[PlannedResponse], str] = paid.own_text,
    n_prompts: int = 2,
    **judged: object,
) -> Path:
    """Lay out a tournament of some prompts that four entrants have answered."""
    keys = {"cache": "off", "protocol": "schema", "pilot_model": paid.JUDGE, **judged}
    place = paid.lay_out(folder, n_prompts=n_prompts, judge=keys)
    set_judging(place, further)
    paid.record_responses(place, text_of)
    return place


def set_judging(place: Path, further: str) -> None:
    """Write what stands behind the settings of the tournament."""
    settings = place / "tournament.toml"
    text = settings.read_text(encoding="utf-8").replace(TOGETHER, "")
    settings.write_text(text + further, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tournament whose judge is asked about all dimensions together."""
    monkeypatch.setenv(MOST_QUERIES, "10")
    return lay_out(tmp_path / "together")


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the first look."""
    with paid.provider() as fake:
        yield fake


def events_of(folder: Path) -> list[Event]:
    """Return what a sound ledger holds."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        assert audit(ledger) == ()
        return [recorded.event for recorded in ledger.read()]


def n_by_dimension(folder: Path) -> Counter[str]:
    """Count the verdicts on each dimension."""
    events = events_of(folder)
    asked = {each.query_key: each for each in events if isinstance(each, JudgeQuerySubmitted)}
    given = (each for each in events if isinstance(each, VerdictReceived))
    return Counter(asked[each.query_key].dimension for each in given)


def billed_tokens(fake: FakeAnthropic) -> tuple[int, int]:
    """Return the tokens of input and output on a provider's bill."""
    total = fake.bill().total
    n_cached = total.n_read + total.n_written_5m + total.n_written_1h
    return total.n_input + n_cached, total.n_output


def recorded_tokens(folder: Path) -> tuple[int, int]:
    """Return the tokens on the ledger."""
    tokens = paid.spend_in(folder).tokens
    return tokens.n_prompt, tokens.n_output


@pytest.mark.parametrize(
    ("provider", "n_words", "share"),
    [
        ("anthropic", 500, 0.40),
        pytest.param("anthropic", 0, 0.61, marks=pytest.mark.nightly),
        pytest.param("anthropic-batch", 500, 0.51, marks=pytest.mark.nightly),
    ],
)
def test_one_request_for_three_dimensions_costs_less_than_three(
    tmp_path: Path, provider: str, n_words: int, share: float
) -> None:
    """The pair is sent once; the tokens of each reply are shared to the last one."""
    cache = "5m" if provider == "anthropic" else "off"  # which requests of a batch hit it is chance

    def text_of(cell: PlannedResponse) -> str:
        return f"{paid.own_text(cell)} {'rest, fluids ' * (n_words // 2)}"

    with paid.provider() as fake:
        apart = lay_out(tmp_path / "apart", "", text_of, cache=cache)
        assert paid.tourney(apart, *JUDGE, url=fake.url, TOURNEY_JUDGE_PROVIDER=provider).code == 0
        n_apart, tokens_apart = len(fake.bill().paid), billed_tokens(fake)
    with paid.provider() as fake:
        together = lay_out(tmp_path / "together", TOGETHER, text_of, cache=cache)
        done = paid.tourney(together, *JUDGE, url=fake.url, TOURNEY_JUDGE_PROVIDER=provider)
        assert done.code == 0, done.err
        n_together, tokens_together = len(fake.bill().paid), billed_tokens(fake)

    assert (n_apart, n_together) == (N_QUERIES, N_REQUESTS)
    assert n_by_dimension(together) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)
    assert recorded_tokens(together) == tokens_together
    assert recorded_tokens(apart) == tokens_apart
    assert [paid.spend_in(each).n_replies for each in (apart, together)] == [N_QUERIES, N_REQUESTS]
    usd = paid.spend_in(together).usd / paid.spend_in(apart).usd
    assert usd == pytest.approx(share, abs=0.01)  # as docs/judges.md says
    outcomes = [each for each in events_of(together) if isinstance(each, PairReconciled)]
    assert len(outcomes) == N_QUERIES / 2


def without(dimension: str, n_lacking: int = 1) -> Callable[[Params], Reply]:
    """Return a model whose first replies say nothing of a dimension."""
    left = [n_lacking]

    def answer(asked: Params) -> Reply:
        said = json.loads(judge(asked).text)
        if left[0] > 0:
            left[0] -= 1
            del said[dimension]
        return Reply(json.dumps(said))

    return answer


@pytest.mark.parametrize("retries", [1, pytest.param(0, marks=pytest.mark.nightly)])
def test_a_reply_that_lacks_a_dimension_fails_that_one_alone(tmp_path: Path, retries: int) -> None:
    """What it says of the others counts, and is asked again for the one that it lacks."""
    folder = lay_out(tmp_path / "lacking", retries=retries)
    with FakeAnthropic(answering=without("calibration")) as fake:
        done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)
        n_paid, tokens = len(fake.bill().paid), billed_tokens(fake)

    events = events_of(folder)
    asked = {each.query_key: each for each in events if isinstance(each, JudgeQuerySubmitted)}
    failed = [each for each in events if isinstance(each, JudgeQueryFailed)]
    assert [(each.reason, asked[each.query_key].dimension) for each in failed] == [
        ("unreadable", "calibration")
    ]
    lacks = 1 - retries
    assert done.code == (6 if lacks else 0), done.err
    expected = Counter(dict.fromkeys(paid.DIMENSIONS, N_REQUESTS))
    assert n_by_dimension(folder) == expected - Counter(calibration=lacks)
    assert n_paid == N_REQUESTS + retries
    assert recorded_tokens(folder) == tokens


@pytest.mark.parametrize(
    "death",
    [
        before(Receipts.receipt, call=12),
        pytest.param(before(AnthropicBatches.create), marks=pytest.mark.nightly),
        *(pytest.param(Death(n), marks=pytest.mark.nightly) for n in range(20, 500, 20)),
    ],
    ids=str,
)
def test_killed_anywhere_a_batch_is_paid_once(
    folder: Path, fake: FakeAnthropic, death: Death
) -> None:
    """Each reply on the bill is on the ledger, shared among its dimensions."""
    killed = paid.command(folder, *JUDGE, url=fake.url, death=death).wait()
    paid.hear_out(fake)
    done = paid.tourney(folder, *JUDGE, url=fake.url)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    bill = fake.bill()
    assert set(bill.n_paid_by_custom_id.values()) == {1}
    assert len(bill.paid) == N_REQUESTS
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)
    paid.require_spent_as_billed(folder, bill)


def test_killed_between_requests_what_was_under_way_is_told(
    folder: Path, fake: FakeAnthropic
) -> None:
    """At most the eight requests under way were perhaps billed, on all of their dimensions."""
    death = before(Receipts.receipt, call=9)
    killed = paid.command(folder, *JUDGE, url=fake.url, death=death, **DIRECT).wait()
    done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)

    assert (killed.code, done.code) == (-signal.SIGKILL, 0), done.err
    failed = [each for each in events_of(folder) if isinstance(each, JudgeQueryFailed)]
    assert {each.fate for each in failed} <= {"perhaps billed"}
    assert len(failed) <= 3 * 8
    assert len(fake.bill().paid) - N_REQUESTS <= len(failed) / 3
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)


def test_switching_it_owes_new_queries_and_back_owes_none(
    folder: Path, fake: FakeAnthropic
) -> None:
    """The texts differ, so the verdicts may."""
    before_it = planned(folder, fake)
    assert paid.tourney(folder, *JUDGE, url=fake.url).code == 0
    set_judging(folder, "")
    told = paid.tourney(folder, *JUDGE, url=fake.url)
    n_paid = len(fake.bill().paid)
    set_judging(folder, TOGETHER)
    again = planned(folder, fake)

    assert before_it["n_owed"] == N_QUERIES
    assert "[judging] together changed: 72 queries are asked again" in told.err
    assert n_paid == N_REQUESTS + N_QUERIES
    assert again["n_owed"] == 0


def planned(folder: Path, fake: FakeAnthropic) -> Json:
    """Return what judging would ask and cost."""
    done = paid.tourney(folder, "plan", "judge", "--json", url=fake.url)
    assert done.code == 0, done.err
    said: Json = json.loads(done.out)
    return said


def test_a_plan_prices_what_is_asked_together(folder: Path, fake: FakeAnthropic) -> None:
    """Counted by queries, priced by requests; after some replies, by their tokens.

    A verdict that depends on what it is asked beside is repeated beside it.
    """
    assert paid.tourney(folder, *JUDGE, "--limit", "6", url=fake.url, **DIRECT).code in {0, 6}
    plan = planned(folder, fake)
    usd_of_six = paid.spend_in(folder).usd
    assert paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT).code == 0
    usd = paid.spend_in(folder).usd - usd_of_six
    done = paid.tourney(folder, *JUDGE, "--repeat", "4", url=fake.url, **DIRECT)
    again = paid.tourney(folder, *JUDGE, "--repeat", "4", url=fake.url, **DIRECT)

    ways = plan["cost"]["ways"]  # type: ignore[index]  # a table of a plan
    (direct,) = [each for each in ways if not each["in_batch"] and each["cache"] == "off"]
    assert plan["n_owed"] == N_QUERIES - 3 * 6
    assert direct["expected_usd"] == pytest.approx(usd, rel=0.1)
    assert (done.code, again.code) == (0, 0), done.err
    assert len(fake.bill().paid) == N_REQUESTS + 4
    asked = [each for each in events_of(folder) if isinstance(each, JudgeQuerySubmitted)]
    assert sum(bool(each.repeats) for each in asked) == 3 * 4


@pytest.mark.nightly
def test_looks_ask_only_about_pairs_that_are_open(tmp_path: Path) -> None:
    """A pair that is decided on one dimension is asked about the others."""
    with FakeAnthropic(answering=judge) as fake:
        folder = lay_out(tmp_path / "looks", further=f"{TOGETHER}looks = 2\n", n_prompts=40)
        done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)
        again = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)
        n_paid = len(fake.bill().paid)

    assert (done.code, again.code) == (0, 0), done.err
    assert "look 1 of 2" in done.err
    assert n_paid <= 20 * N_REQUESTS


def say_each(_body: Json) -> Said:
    """Give a verdict on each of the dimensions as the system text shows them, and in prose."""
    said = {
        each: {"reasoning": "Read.", "verdict": "A" if n else "TIE"}
        for n, each in enumerate(paid.DIMENSIONS)
    }
    return Said(f"Here they are:\n```json\n{json.dumps(said)}\n```")


def test_a_server_without_schemas_is_asked_for_json_in_words(tmp_path: Path) -> None:
    """The usual protocol, line, asks for the same object, which is found in the reply."""
    folder = lay_out(tmp_path / "line")
    with FakeOpenAI(say_each) as server:
        server.traffic.models = None
        jury = '\n[[jury]]\nid = "mine"\nprovider = "endpoint"\nmodel = "m"\n'
        jury += f'base_url = "{server.url}"\n'
        set_judging(folder, TOGETHER + jury)
        done: Ended = paid.tourney(folder, *JUDGE, "--judge", "mine", url=server.url)
        asked = server.traffic.asked

    assert done.code == 0, done.err
    assert len(asked) == N_REQUESTS
    assert not any("response_format" in body for body in asked)
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)
    given = [each for each in events_of(folder) if isinstance(each, VerdictReceived)]
    assert Counter(each.verdict for each in given) == {"TIE": N_REQUESTS, "A": 2 * N_REQUESTS}
    assert fsum(each.usage.n_input for each in given if each.usage) > 0


def test_counterbalanced_a_pair_is_asked_once_about_all_dimensions(
    tmp_path: Path, fake: FakeAnthropic
) -> None:
    """One order is drawn for a pair on all dimensions, or its request would be sent twice."""
    folder = lay_out(tmp_path / "once", f'{TOGETHER}orders = "counterbalanced"\n')
    done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)
    n_paid = len(fake.bill().paid)

    assert done.code == 0, done.err
    assert N_REQUESTS / 2 <= n_paid < N_REQUESTS
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, n_paid)
    assert planned(folder, fake)["n_owed"] == 0


def test_ledgers_that_judged_a_part_each_are_merged_and_completed(
    folder: Path, fake: FakeAnthropic, tmp_path: Path
) -> None:
    """Requests that both asked are two bills, and one verdict counts; the rest is asked once."""
    theirs = shutil.copytree(folder, tmp_path / "theirs")
    parts = (
        paid.tourney(folder, *JUDGE, "--limit", "10", url=fake.url, **DIRECT),
        paid.tourney(theirs, *JUDGE, "--limit", "6", url=fake.url, **DIRECT),
    )
    merged = paid.tourney(folder, "merge", str(theirs / "tournament.db"), url=fake.url)
    done = paid.tourney(folder, *JUDGE, url=fake.url, **DIRECT)

    assert {each.code for each in parts} <= {0, 6}
    assert done.code == 0, done.err
    assert "VerdictReceived" not in merged.out  # the copy's opening alone differs
    assert len(fake.bill().paid) == N_REQUESTS + 6
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)
    assert paid.tourney(folder, "verify", url=fake.url).code == 0


def test_a_judge_on_this_machine_is_asked_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is asked once, and its reply is read on each dimension."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", paid.CANARY)
    monkeypatch.setenv("TOURNEY_JUDGE_PROVIDER", "anthropic")
    folder = lay_out(tmp_path / "local")
    told: list[str] = []
    asked = ScriptedJudge(
        lambda query: say_each({}).content if "calibration" in query.system else None, at_a_time=5
    )
    place = workspace(folder / "tournament.toml", None)
    console = Console(told.append, None, no_progress)
    options = JudgingOptions(spending=SpendingOptions(agreed=True))
    with place.recorder(print) as recorder:
        recorder.record(place.opening)
        bank = [prompt.prompt_id for prompt in recorder.state.bank]
        plan = plan_judging(recorder, place.settings, folder, bank, options, console)
        done = judge_with_consent(recorder, plan, ScriptedBackends(judge=asked), console)

    assert len(asked.asked) == N_REQUESTS
    assert (done.n_open, done.n_verdicts, done.n_failed) == (N_REQUESTS, N_REQUESTS, 0)
    assert n_by_dimension(folder) == dict.fromkeys(paid.DIMENSIONS, N_REQUESTS)
