"""Entrants that respond in batches: at half the price, nothing paid twice, nothing lost.

The provider is a process of its own, whose bill is compared with the ledger, request by request.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from math import fsum
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final

import pytest

from commands.backends.anthropic.batches import AnthropicBatches
from commands.batching.sending import fitting_prefix
from commands.decisions.recorder import Recorder
from commands.entrants.batches import EntrantSide
from commands.spending.budget import everything_usd
from commands.spending.endpoints import settlement
from commands.spending.price_table import price_table
from ledger.events.money import Usage, cost_usd
from ledger.events.responses import ResponseGenerated
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import advance, tournament_of
from projections.tournament.spend import spend_of
from tests.providers.anthropic.exchange import Fault, Shares
from tests.providers.anthropic.server import FakeAnthropic
from tests.providers.openai import MODEL, PRICES, FakeOpenAI, Said
from tests.support.command_line import paid
from tests.support.command_line.killing import kill
from tests.support.command_line.settled import events_in
from tests.support.command_line.warm import MOST_QUERIES, Ended
from tests.support.faults.death import Death, before
from tests.support.patience import PATIENCE_S

SETTINGS: Final = paid.ENTRANTS_BY_NAME.replace("[generation]\n", "[generation]\nbatch = true\n")
MODELS: Final = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5"}
GENERATE: Final = ("apply", "generate", "--yes")
N_PROMPTS: Final = 6
N_RESPONSES: Final = 2 * N_PROMPTS
ROUNDING_USD: Final = 1e-9


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tournament of six prompts and two entrants at Anthropic, in batches of four."""
    monkeypatch.setenv(MOST_QUERIES, "4")
    place = paid.lay_out(tmp_path / "paid", n_prompts=N_PROMPTS)
    (place / "tournament.toml").write_text(SETTINGS, encoding="utf-8")
    return place


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a provider whose batches end at the second look."""
    with paid.provider(n_looks=1) as fake:
        yield fake


def said_in(folder: Path) -> list[ResponseGenerated]:
    """Return the responses on a sound ledger."""
    return events_in(folder, ResponseGenerated)


def batches_in(folder: Path, fake: FakeAnthropic) -> Any:  # noqa: ANN401  # JSON
    """Return the rows of `batch list`."""
    return json.loads(paid.tourney(folder, "batch", "list", "--json", url=fake.url).out)["rows"]


def batch_usd(usage: Usage, entrant: str) -> float:
    """Return what an entrant's answer costs in a batch."""
    priced = price_table().of(MODELS[entrant])
    assert priced is not None
    return cost_usd(usage, priced.price(usage, in_batch=False)) / 2


def require_billed_once(folder: Path, fake: FakeAnthropic) -> None:
    """Compare the bill with the ledger: each paid answer is there, once."""
    answered = [each for each in paid.charges_in(folder) if each.fate == "answered"]
    n_paid = fake.bill().n_paid_by_custom_id
    assert Counter(each.request for each in answered) == n_paid
    assert set(n_paid.values()) <= {1}


def require_paid_as_recorded(folder: Path, fake: FakeAnthropic) -> None:
    """Compare the bill with the ledger: each paid answer is there once, at half of its price."""
    require_billed_once(folder, fake)
    with Ledger.read_only(folder / "tournament.db") as ledger:
        spent = fold(spend_of(StreamId("paid")), ledger.read()).entrants
    usd = fsum(
        batch_usd(Usage(each.n_prompt_tokens or 0, each.n_generated_tokens or 0), each.entrant_id)
        for each in said_in(folder)
    )
    assert spent.usd == pytest.approx(usd, abs=ROUNDING_USD)
    assert not spent.under_way
    assert not spent.at_risk_usd


def require_done(folder: Path, fake: FakeAnthropic) -> Ended:
    """Run to the end: every response is there, and was paid once."""
    paid.hear_out(fake)
    done = paid.tourney(folder, *GENERATE, url=fake.url)
    assert done.code == 0, done.err
    assert len(said_in(folder)) == N_RESPONSES
    require_paid_as_recorded(folder, fake)
    return done


def test_entrants_respond_in_batches_at_half_the_price(folder: Path, fake: FakeAnthropic) -> None:
    """As planned; no request is sent alone, and the same command again sends nothing."""
    planned = json.loads(paid.tourney(folder, "plan", "generate", "--json", url=fake.url).out)
    (folder / "direct.toml").write_text(SETTINGS.replace("batch = true", ""), encoding="utf-8")
    direct = json.loads(
        paid.tourney(folder, "plan", "generate", "--json", "-c", "direct.toml", url=fake.url).out
    )

    require_done(folder, fake)
    again = require_done(folder, fake)

    for cost, alone in zip(planned["served"], direct["served"], strict=True):
        assert cost["expected_usd"] == pytest.approx(alone["expected_usd"] / 2)
        assert cost["worst_usd"] == pytest.approx(alone["worst_usd"] / 2)
    assert "0 responses were missing" in again.err
    bill = fake.bill()
    assert len(bill.batches) == 4  # four and two of each entrant
    assert {line.batch_id for line in bill.lines} == {*bill.batches}
    assert paid.tourney(folder, "verify", url=fake.url).code == 0


BY_NIGHT: Final = [
    before(fitting_prefix),  # nothing is planned
    before(Recorder.record, call=3),
    before(AnthropicBatches.results, call=3),
    before(settlement, call=2),
    *(Death(n) for n in range(20, 620, 20)),
]
KILLS: Final = [
    before(AnthropicBatches.create),  # planned, and not sent
    before(EntrantSide.record),
    *(pytest.param(death, marks=pytest.mark.nightly) for death in BY_NIGHT),
]


@pytest.mark.parametrize("death", KILLS, ids=str)
def test_killed_anywhere_nothing_is_asked_twice(
    folder: Path, fake: FakeAnthropic, death: Death
) -> None:
    """The provider goes on; the same command again finds what it did."""
    killed = paid.command(folder, *GENERATE, url=fake.url, death=death).wait()
    assert killed.code == -SIGKILL, killed.err

    require_done(folder, fake)


def test_killed_before_the_provider_answers_the_batch_is_found(
    folder: Path, fake: FakeAnthropic
) -> None:
    """Only the provider knows its name, and it is billed."""
    fake.inject(Fault(endpoint="batches.create", kind="late", delay_s=PATIENCE_S))
    process = paid.command(folder, *GENERATE, url=fake.url)
    process.until(lambda: len(fake.bill(settle=False).batches) == 1)
    process.kill()
    fake.clear()

    done = require_done(folder, fake)

    assert "which was sent before" in done.err


@pytest.mark.nightly
def test_killed_again_and_again_nothing_is_asked_twice(
    folder: Path, fake: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the step, the ledger and the bill agree in the end."""
    for name, text in paid.environment(fake.url).items():
        monkeypatch.setenv(name, text)

    kill(folder, *GENERATE, n_kills=30, furthest=150, after_each=partial(paid.hear_out, fake))

    require_done(folder, fake)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Shares(expired=0.3), id="some expire"),
        pytest.param(Shares(errored=1.0, error_type="billing_error"), id="nobody pays"),
        pytest.param(Shares(errored=0.3), id="some", marks=pytest.mark.nightly),
        pytest.param(Shares(errored=1.0), id="all", marks=pytest.mark.nightly),
        pytest.param(
            Shares(errored=1.0, error_type="invalid_request_error"),
            id="all are rejected",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_fails_in_a_batch_is_named_and_asked_by_the_next_command(
    folder: Path, fake: FakeAnthropic, trouble: Shares
) -> None:
    """It costs nothing, and is not the prompt's fault if nothing succeeds."""
    fake.inject(shares=trouble)
    first = paid.tourney(folder, *GENERATE, url=fake.url)
    n_first = len(said_in(folder))
    fake.clear()

    assert first.code == 1, first.err
    assert "the last error" in first.err
    assert n_first < N_RESPONSES
    require_done(folder, fake)


def test_a_request_that_is_rejected_alone_is_a_failed_response(
    folder: Path, fake: FakeAnthropic
) -> None:
    """As where it is asked alone: it is asked again on demand."""
    fake.inject(shares=Shares(errored=0.2, error_type="invalid_request_error"))
    first = paid.tourney(folder, *GENERATE, url=fake.url)
    fake.clear()
    idle = paid.tourney(folder, *GENERATE, url=fake.url)
    n_said = len(said_in(folder))
    done = paid.tourney(folder, *GENERATE, "--retry", "rejected", url=fake.url)

    assert (first.code, idle.code, done.code) == (6, 6, 0), first.err + done.err
    assert 0 < n_said < N_RESPONSES
    assert f"0 generated, {N_RESPONSES - n_said} failed" not in idle.err
    require_done(folder, fake)


def test_no_wait_sends_and_the_batch_commands_serve_entrants(folder: Path) -> None:
    """Money in flight can be seen, left alone, stopped and received; what was stopped is open."""
    send = (*GENERATE, "--no-wait")
    with paid.provider(n_looks=None) as fake:
        sent = paid.tourney(folder, *send, url=fake.url)
        waiting = paid.tourney(folder, *send, url=fake.url)
        planned = paid.tourney(folder, "plan", "generate", url=fake.url)
        rows = batches_in(folder, fake)
        stopped = paid.tourney(folder, "batch", "cancel", rows[0]["batch"], url=fake.url)
        fake.end_batches()
        received = paid.tourney(folder, "batch", "wait", url=fake.url)
        after = batches_in(folder, fake)
        again = paid.tourney(folder, *send, url=fake.url)
        fake.end_batches()

        require_done(folder, fake)

    assert (sent.code, waiting.code, stopped.code, received.code, again.code) == (7, 7, 0, 0, 7)
    assert f"{N_RESPONSES} requests in 4 batches" in waiting.err
    assert f"{N_RESPONSES} responses are in batches" in planned.out
    assert [(row["judge"], row["status"], row["n_queries"]) for row in rows] == [
        (name, "in flight", n) for name in MODELS for n in (4, 2)
    ]
    assert [row["n_verdicts"] for row in after] == [0, 2, 4, 2]


@pytest.mark.nightly
def test_what_was_left_unanswered_and_is_answered_now_is_no_failure(
    folder: Path, fake: FakeAnthropic
) -> None:
    """One command hears that earlier requests expired, asks again, and gets all."""
    fake.inject(shares=Shares(expired=0.3, first_attempts_only=True))
    sent = paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url)
    done = paid.tourney(folder, *GENERATE, url=fake.url)

    assert (sent.code, done.code) == (7, 0), sent.err + done.err
    assert "the last error" in done.err
    require_done(folder, fake)


def test_a_batch_that_ended_unbilled_is_not_taken_up(folder: Path, fake: FakeAnthropic) -> None:
    """Its errors are results: there is nothing more to receive."""
    fake.inject(shares=Shares(errored=0.5))
    failed = paid.tourney(folder, *GENERATE, url=fake.url)
    rows = batches_in(folder, fake)
    waited = paid.tourney(folder, "batch", "wait", rows[0]["batch"], url=fake.url)

    assert failed.code == 1
    assert 0 < len(said_in(folder)) < N_RESPONSES
    assert waited.code == 2
    assert "each of its requests has a result" in waited.err
    assert batches_in(folder, fake) == rows


def test_a_batch_that_is_gone_is_given_up_at_its_worst_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it cost is counted, until it is found; then nothing is paid again."""
    monkeypatch.setenv(MOST_QUERIES, "6")  # a batch of each entrant
    with paid.provider(n_looks=None) as fake:
        assert paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url).code == 7
        fake.end_batches()
        fake.advance(timedelta(days=30))
        lost = paid.tourney(folder, "batch", "wait", url=fake.url)
        rows = batches_in(folder, fake)
        given_up = [
            paid.tourney(folder, "batch", "forget", row["batch"], url=fake.url) for row in rows
        ]
        worst_usd = fsum(row["worst_usd"] for row in rows)

        assert lost.code != 0
        assert [each.code for each in given_up] == [0] * 2, given_up[0].err
        charges = paid.charges_in(folder)
        assert {each.fate for each in charges} == {"perhaps billed"}
        assert fsum(each.usd or 0 for each in charges) == pytest.approx(worst_usd)

        fake.advance(timedelta(days=-30))
        for row in rows:
            found = paid.tourney(folder, "batch", "wait", row["batch"], url=fake.url)
            assert found.code == 0, found.err
        assert len(said_in(folder)) == N_RESPONSES
        assert len(fake.bill().batches) == 2


def test_no_cap_is_passed(folder: Path, fake: FakeAnthropic) -> None:
    """What a batch may cost at worst counts until it has ended; the rest is sent then."""
    planned = json.loads(paid.tourney(folder, "plan", "generate", "--json", url=fake.url).out)
    expected_usd = fsum(cost["expected_usd"] for cost in planned["served"])
    low = paid.tourney(folder, *GENERATE, "--max-usd", f"{expected_usd / 2:.4f}", url=fake.url)
    cap_usd = round(expected_usd * 1.01, 4)
    done = paid.tourney(folder, *GENERATE, "--max-usd", str(cap_usd), url=fake.url)

    assert (low.code, done.code) == (5, 0), low.err + done.err
    assert "the cap " in done.err  # held back some
    with Ledger.read_only(folder / "tournament.db") as ledger:
        state, most_usd = tournament_of(StreamId("paid")).initial, 0.0
        for event in ledger.read():
            state = advance(state, (event,))
            most_usd = max(most_usd, everything_usd(state))
        assert cap_usd / 2 < most_usd <= cap_usd
    require_done(folder, fake)


def test_what_is_asked_may_change_while_a_batch_is_in_flight(folder: Path) -> None:
    """A prompt or an entrant that is gone was paid for all the same: its response is kept."""
    with paid.provider(n_looks=None) as fake:
        assert paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url).code == 7
        lines = (folder / "bank.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "bank.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
        text = SETTINGS.replace('system = "Be brief."', 'system = "Be long."')
        (folder / "tournament.toml").write_text(text, encoding="utf-8")
        fake.end_batches()
        received = paid.tourney(folder, "batch", "wait", url=fake.url)
        resent = paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url)
        fake.end_batches()
        done = paid.tourney(folder, *GENERATE, url=fake.url)

        assert (received.code, resent.code, done.code) == (0, 7, 0), received.err + done.err
        assert len(said_in(folder)) == N_RESPONSES + N_PROMPTS - 1
        require_paid_as_recorded(folder, fake)


def test_a_conversation_is_answered_a_batch_a_turn(folder: Path, fake: FakeAnthropic) -> None:
    """By one command: what is asked next depends on the answer, so a batch waits for the other."""
    talk = {"prompt_id": "mt", "turns": ["Write a verse.", "Make it rhyme."]}
    (folder / "bank.jsonl").write_text(json.dumps(talk), encoding="utf-8")

    done = paid.tourney(folder, *GENERATE, url=fake.url)

    assert done.code == 0, done.err
    assert len(said_in(folder)) == 2 * 2
    assert len(fake.bill().batches) == 4  # of each entrant one a turn


def test_an_answer_redacted_while_the_next_turn_is_in_flight_stops_no_batch(folder: Path) -> None:
    """What was paid is recorded; the response that followed the lost text alone is left out."""
    talks = [
        {"prompt_id": f"mt{n}", "turns": [f"Write a verse on {n}.", "Make it rhyme."]}
        for n in range(2)
    ]
    (folder / "bank.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    with paid.provider(n_looks=None) as fake:
        for _ in range(2):  # a turn each
            assert paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url).code == 7
            fake.end_batches()
        with Ledger.read_only(folder / "tournament.db") as ledger:
            first = next(iter(ledger.read(types=["ResponseGenerated"]))).position
        redact = ("redact", str(first), "--why", "private", "--yes")
        assert paid.tourney(folder, *redact, url=fake.url).code == 0

        received = paid.tourney(folder, "batch", "wait", url=fake.url)
        again = paid.tourney(folder, *GENERATE, url=fake.url)
        rows = batches_in(folder, fake)

        assert (received.code, again.code) == (0, 0), received.err + again.err
        assert "1 result for entrant 'opus' left out" in received.err
        assert {row["status"] for row in rows} == {"ended"}
        assert len(said_in(folder)) == 2 * 2 * 2 - 1
        assert len(fake.bill().batches) == 4  # of each entrant one a turn
        require_billed_once(folder, fake)


def test_entrants_elsewhere_are_asked_while_batches_go_on(folder: Path) -> None:
    """Only Anthropic's are batched; a limit holds for all together."""
    with paid.provider(n_looks=None) as fake, FakeOpenAI(lambda _: Said("Here.")) as other:
        table = f'[[entrants]]\nid = "near"\nmodel = "{MODEL}"\nbase_url = "{other.url}"\n\n'
        head, mark, tail = SETTINGS.partition("[[rubrics]]")
        (folder / "tournament.toml").write_text(f"{head}{table}{mark}{tail}", encoding="utf-8")
        few = paid.tourney(folder, *GENERATE, "--limit", "4", "--no-wait", url=fake.url)
        n_few = len(said_in(folder)), fake.bill(settle=False).n_open_requests
        fake.end_batches()
        sent = paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url)
        n_asked = len(other.traffic.asked)
        fake.end_batches()
        done = paid.tourney(folder, *GENERATE, url=fake.url)

        assert (few.code, sent.code, done.code) == (7, 7, 0), sent.err + done.err
        assert n_few == (1, 3)
        assert n_asked == N_PROMPTS
        assert len(said_in(folder)) == 3 * N_PROMPTS
        assert len(fake.bill().paid) == N_RESPONSES


def test_a_cap_waits_for_batches_that_cost_less_than_feared(
    folder: Path, fake: FakeAnthropic
) -> None:
    """While they are in flight their worst counts; then the others are asked, by one command."""
    head, opus, sonnet, tail = SETTINGS.replace("[[rubrics]]", "[[entrants]]").split("[[entrants]]")
    rest = f'[[rubrics]]{tail}prices = "prices.toml"\n'
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    bank = (folder / "bank.jsonl").read_text(encoding="utf-8")
    settings = folder / "tournament.toml"
    with FakeOpenAI(lambda _: Said("Here.")) as other:
        near, twin = (
            f'\nid = "{name}"\nmodel = "{MODEL}"\nbase_url = "{other.url}"\n\n'
            for name in ("near", "twin")
        )
        alone = head.replace("batch = true\n", "")  # which is for entrants in batches
        settings.write_text(f"{alone}[[entrants]]{near}[[entrants]]{twin}{rest}")
        (folder / "bank.jsonl").write_text(bank.partition("\n")[2], encoding="utf-8")
        before = paid.tourney(folder, *GENERATE, url=fake.url)
        assert before.code == 0, before.err
        settings.write_text(f"{head}[[entrants]]{opus}[[entrants]]{sonnet}[[entrants]]{near}{rest}")
        (folder / "bank.jsonl").write_text(bank, encoding="utf-8")
        plan = json.loads(paid.tourney(folder, "plan", "generate", "--json", url=fake.url).out)
        worst = {each["entrant_id"]: each["worst_usd"] for each in plan["served"]}
        with Ledger.read_only(folder / "tournament.db") as ledger:
            spent = everything_usd(fold(tournament_of(StreamId("paid")), ledger.read()))
        cap = spent + worst["opus"] + worst["sonnet"] + worst["near"] / 2
        done = paid.tourney(folder, *GENERATE, "--max-usd", str(cap), url=fake.url)

    assert done.code == 0, done.err
    assert len(said_in(folder)) == 3 * N_PROMPTS


def test_a_limit_holds_where_a_cap_waits_for_batches(folder: Path, fake: FakeAnthropic) -> None:
    """What ended before the wait counts, and a failure as well as an answer."""
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    spoken = iter([Said("", finish_reason="content_filter")])
    with FakeOpenAI(lambda _: next(spoken, Said("x" * 7_900))) as other:  # as long as may be
        near = f'[[entrants]]\nid = "near"\nmodel = "{MODEL}"\nbase_url = "{other.url}"\n\n'
        head, mark, tail = SETTINGS.partition("[[rubrics]]")
        text = f'{head}{near}{mark}{tail}prices = "prices.toml"\n'
        (folder / "tournament.toml").write_text(text, encoding="utf-8")
        capped = ("--limit", "15", "--max-usd", "0.255")  # 0.181 in batches at worst, 0.024 each
        done = paid.tourney(folder, *GENERATE, *capped, url=fake.url)

    assert done.code == 6, done.err
    assert "responses: 1 of 1" in done.err.partition(" ended: ")[2], "it did not wait"
    assert "18 responses were missing: 14 generated, 1 failed" in done.err
    assert len(other.traffic.asked) == 5


def test_a_run_asks_once_and_goes_on_where_a_batch_was_in_flight(folder: Path) -> None:
    """One consent at the price of batches; without waiting it comes back for the rest."""
    run = ("run", "--yes", "--no-wait")
    with paid.provider(n_looks=None) as fake:
        sent = paid.tourney(folder, *run, url=fake.url)
        fake.end_batches()
        done = paid.tourney(folder, *run, url=fake.url)

    assert (sent.code, done.code) == (7, 0), sent.err + done.err
    assert len(said_in(folder)) == N_RESPONSES
    assert "published in" in done.err


def test_a_tournament_without_an_entrant_at_anthropic_has_no_batches(
    folder: Path, fake: FakeAnthropic
) -> None:
    """A setting that does nothing is a mistake."""
    elsewhere = SETTINGS.replace("anthropic/", "openai/")
    (folder / "tournament.toml").write_text(elsewhere, encoding="utf-8")
    refused = paid.tourney(folder, "plan", "generate", url=fake.url)
    (folder / "tournament.toml").write_text(
        elsewhere.replace("batch = true\n", ""), encoding="utf-8"
    )
    idle = paid.tourney(folder, *GENERATE, "--no-wait", url=fake.url)

    assert (refused.code, idle.code) == (2, 2)
    assert "'generation.batch' needs an entrant at Anthropic" in refused.err
    assert "--no-wait needs [generation] batch = true" in idle.err
