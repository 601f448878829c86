"""One judging command: the judge and the cap by the settings, then consent, then queries."""

from collections.abc import Callable
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError, NoCredentials, Refused, WorkInFlight
from commands.judging.batches import attending_batches
from commands.judging.judge import JudgeTask, JudgingSummary
from commands.judging.plan import JudgingOptions, JudgingPlan, plan_judging, require_cap_can_be_kept
from commands.judging.session import (
    batches_not_received,
    judge_with_consent,
    require_none_in_flight,
)
from commands.ports import LocalJudge
from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.schema import Settings
from commands.spending.budget import PriceUnknown, SpendingOptions, dollars
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId, StreamId
from ledger.store import Ledger
from projections.tournament.remaining import open_queries
from tests.support.builders.batches import planned_batch, sent
from tests.support.builders.commands import (
    P1,
    P2,
    prefer_tuned,
    preferring_tuned,
    record_answers,
    reply,
    settings,
    types_of,
)
from tests.support.builders.events import STREAM, judge, opened, prompt, verdict
from tests.support.scripted import (
    ScriptedBackends,
    ScriptedBatchJudge,
    ScriptedJudge,
    ScriptedTerminal,
)

PAID = {"provider": "anthropic-batch", "model": "claude-opus-5-5"}
LARGE = judge(
    "claude-opus-5-5",
    provider="anthropic-batch",
    model="claude-opus-5-5",
    parameters=(("effort", "low"), ("max_tokens", 4096.0), ("protocol", "line")),
)
LOCAL = judge("local", provider="endpoint", model="local", parameters=(("max_tokens", 64.0),))
OTHER = StreamId("other")


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament with all responses, and a panel of a free, a paid and a local judge."""
    bank = [prompt("p1"), prompt("p2")]
    return record_answers(recorder, opened(prompts=bank, judges=[judge(), LARGE, LOCAL]))


@pytest.fixture
def terminal() -> ScriptedTerminal:
    """Give a terminal whose user agrees to everything."""
    return ScriptedTerminal(answer=True)


@pytest.fixture
def batches() -> ScriptedBatchJudge:
    """Give a provider whose batches end at once."""
    return ScriptedBatchJudge(prefer_tuned)


@pytest.fixture
def set_key(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Give a function that sets the API key, or leaves none."""

    def set_to(key: str | None) -> None:
        for name in ANTHROPIC_KEYS:
            monkeypatch.delenv(name, raising=False)
        if key is not None:
            monkeypatch.setenv(ANTHROPIC_KEYS[0], key)

    return set_to


def plan(
    recorder: Recorder,
    terminal: ScriptedTerminal,
    options: JudgingOptions | None = None,
    chosen: Settings | None = None,
) -> JudgingPlan:
    """Plan to judge both prompts."""
    asked = chosen or settings()
    console = terminal.console
    return plan_judging(recorder, asked, Path(), [P1, P2], options or JudgingOptions(), console)


def test_the_judge_is_the_modes_unless_one_of_the_panel_is_named(
    recorder: Recorder, terminal: ScriptedTerminal
) -> None:
    """A name goes before the settings; if it is wrong, the message names those that there are."""
    assert plan(recorder, terminal).judge.judge_id == "reference"
    assert plan(recorder, terminal, chosen=settings(judge=PAID)).judge == LARGE
    assert plan(recorder, terminal, JudgingOptions(judge="local")).judge == LOCAL
    fault = "--judge 'gpt' is not on the panel: reference, claude-opus-5-5, local"
    with pytest.raises(ConfigurationError, match=f"^{fault}$"):
        plan(recorder, terminal, JudgingOptions(judge="gpt"))


def test_only_batches_can_be_left_to_themselves(
    recorder: Recorder, terminal: ScriptedTerminal
) -> None:
    """A judge that answers at once would be asked nothing."""
    with pytest.raises(ConfigurationError, match="--no-wait needs a provider with batches"):
        plan(recorder, terminal, JudgingOptions(waits=False))


@pytest.mark.parametrize(
    ("own", "option", "cap"),
    [(None, None, None), (5.0, None, 5.0), (5.0, 3.0, 3.0), (2.0, 3.0, 2.0), (None, 3.0, 3.0)],
)
def test_the_stricter_cap_holds(
    recorder: Recorder,
    terminal: ScriptedTerminal,
    own: float | None,
    option: float | None,
    cap: float | None,
) -> None:
    """An option can only lower what the settings allow."""
    options = JudgingOptions(spending=SpendingOptions(max_usd=option))

    task = plan(recorder, terminal, options, settings(judge={**PAID, "max_usd": own})).task

    assert task.max_usd == cap


def test_a_pilot_is_too_small_to_warm_a_cache(
    recorder: Recorder, terminal: ScriptedTerminal
) -> None:
    """Its first batch would be waited for, and save next to nothing."""
    pilot = {**PAID, "pilot_model": "claude-opus-5-5"}
    headline = JudgingOptions()

    found = [
        plan(recorder, terminal, options, settings(judge=judge)).batch_options
        for options, judge in (
            (headline, pilot),
            (JudgingOptions(mode="pilot"), pilot),
            (headline, {**PAID, "cache": "off"}),
        )
    ]

    assert [each.prewarms for each in found] == [True, False, False]


def test_a_cap_on_a_judge_without_a_price_is_found_out_early(
    recorder: Recorder, terminal: ScriptedTerminal
) -> None:
    """Before the responses are paid for that nobody could judge."""
    capped = SpendingOptions(max_usd=1.0)

    require_cap_can_be_kept(plan(recorder, terminal, JudgingOptions(judge="local")))
    with pytest.raises(PriceUnknown):
        require_cap_can_be_kept(
            plan(recorder, terminal, JudgingOptions(judge="local", spending=capped))
        )


def local_at(base_url: str) -> Settings:
    """Return settings with the judge `local` on a server."""
    served = {"id": "local", "provider": "endpoint", "model": "local", "base_url": base_url}
    return settings(jury=[served])


@pytest.mark.parametrize("named", ["reference", "local"])
def test_a_judge_without_a_price_is_asked_without_consent_on_the_users_own_network(
    recorder: Recorder, named: str
) -> None:
    """Nobody is asked to agree to nothing."""
    terminal, direct = ScriptedTerminal(answer=False), preferring_tuned()
    own = local_at("http://10.0.0.7:8000/v1")
    chosen = plan(recorder, terminal, JudgingOptions(judge=named), own)

    done = judge_with_consent(recorder, chosen, ScriptedBackends(judge=direct), terminal.console)

    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    assert (len(direct.asked), terminal.asked) == (4, [])


def test_a_judge_without_a_price_on_the_servers_of_others_needs_consent(recorder: Recorder) -> None:
    """It may cost money; the question says that nobody knows how much."""
    terminal, direct = ScriptedTerminal(answer=False), preferring_tuned()
    hosted = local_at("https://api.example.com/v1")
    chosen = plan(recorder, terminal, JudgingOptions(judge="local"), hosted)

    with pytest.raises(Refused, match="not confirmed"):
        judge_with_consent(recorder, chosen, ScriptedBackends(judge=direct), terminal.console)

    assert direct.asked == []
    (question,) = terminal.asked
    assert question.endswith("? The price of local is unknown.")


def test_what_failed_for_good_is_asked_again_if_the_user_says_so(
    recorder: Recorder, ledger: Ledger, terminal: ScriptedTerminal
) -> None:
    """The server's context was raised, say; each failure is given one more chance."""
    cut = ScriptedJudge(lambda each: reply(each.query_key, stop_reason="max_tokens"))
    ask = JudgingOptions(judge="local")
    again = JudgingOptions(judge="local", retry=frozenset({"truncated"}))

    def judged(port: LocalJudge, options: JudgingOptions) -> JudgingSummary:
        chosen = plan(recorder, terminal, options)
        return judge_with_consent(recorder, chosen, ScriptedBackends(judge=port), terminal.console)

    failed, given_up = judged(cut, ask), judged(preferring_tuned(), ask)
    mended, done = judged(preferring_tuned(), again), judged(preferring_tuned(), again)

    assert (failed.n_open, failed.n_failed, given_up.n_open) == (4, 4, 0)
    assert (mended.n_open, mended.n_verdicts, done.n_open) == (4, 4, 0)
    assert types_of(ledger).count("JudgeQueryReopened") == 4
    assert "4 failed queries will be asked again" in terminal.told


def test_nothing_is_opened_again_without_consent(
    recorder: Recorder, ledger: Ledger, set_key: Callable[[str | None], None]
) -> None:
    """The question counts what would be asked again, and the answer is awaited."""
    set_key("secret")
    cut = ScriptedBatchJudge(lambda each: reply(each.query_key, stop_reason="max_tokens"))
    agreeing, refusing = ScriptedTerminal(answer=True), ScriptedTerminal(answer=False)
    chosen = settings(judge=PAID)
    again = JudgingOptions(retry=frozenset({"truncated"}))

    def judged(terminal: ScriptedTerminal, options: JudgingOptions) -> JudgingSummary:
        planned = plan(recorder, terminal, options, chosen)
        return judge_with_consent(
            recorder, planned, ScriptedBackends(batches=cut), terminal.console
        )

    judged(agreeing, JudgingOptions())
    with pytest.raises(Refused, match="not confirmed"):
        judged(refusing, again)
    n_reopened = types_of(ledger).count("JudgeQueryReopened")
    done = judged(agreeing, again)

    assert n_reopened == 0
    assert "4 failed queries will be asked again" not in refusing.told
    (question,) = refusing.asked
    assert question.startswith("Submit 4 requests to claude-opus-5-5 for about $")
    assert types_of(ledger).count("JudgeQueryReopened") == done.n_open == 4


def test_batches_are_sent_after_one_question(
    recorder: Recorder,
    terminal: ScriptedTerminal,
    batches: ScriptedBatchJudge,
    set_key: Callable[[str | None], None],
) -> None:
    """The whole cost is said at once, and what it is if each is asked once more."""
    set_key("secret")
    chosen = plan(recorder, terminal, chosen=settings(judge=PAID))
    asked = [each.asked for each in chosen.task.open_in(recorder.state)]
    once_usd = chosen.task.pricing.worst_usd(asked)

    done = judge_with_consent(recorder, chosen, ScriptedBackends(batches=batches), terminal.console)

    assert done == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    (question,) = terminal.asked
    assert question.startswith("Submit 4 requests to claude-opus-5-5 for about $")
    assert once_usd is not None
    assert question.endswith(f"(at worst {dollars(2 * once_usd)})?")


def test_without_a_key_nobody_is_asked(
    recorder: Recorder,
    terminal: ScriptedTerminal,
    batches: ScriptedBatchJudge,
    set_key: Callable[[str | None], None],
) -> None:
    """Who agreed to the cost would learn only then that nothing can be sent."""
    set_key(None)
    chosen = plan(recorder, terminal, chosen=settings(judge=PAID))

    with pytest.raises(NoCredentials):
        judge_with_consent(recorder, chosen, ScriptedBackends(batches=batches), terminal.console)

    assert (terminal.asked, batches.asked) == ([], [])


INTERRUPTED = [
    "batch msgbatch_01 keeps running: 2 requests are billed",
    "`tourney batch wait` receives them, `tourney batch cancel` stops them",
]


@pytest.mark.parametrize(("n_in_flight", "told"), [(2, INTERRUPTED), (0, [])])
def test_an_interrupted_command_says_which_batches_are_billed(
    recorder: Recorder, terminal: ScriptedTerminal, n_in_flight: int, told: list[str]
) -> None:
    """Ctrl-C stops this process, not the provider; where nothing goes on, it needs no words."""
    later = with_batch(recorder, STREAM, n_in_flight)

    with (
        pytest.raises(KeyboardInterrupt),
        attending_batches(later, terminal.console.tell),
    ):
        raise KeyboardInterrupt

    assert terminal.told == told


@pytest.mark.parametrize(
    ("stream", "asked", "told"),
    [
        (
            STREAM,
            judge(),
            "a batch to 'reference' is in flight; {}`tourney batch wait` receives it",
        ),
        (STREAM, LARGE, None),  # it receives this tournament's own
        (OTHER, judge(), "a batch of tournament 'other' is in flight; {}receive it with that "),
        (OTHER, LARGE, "a batch of tournament 'other' is in flight; {}receive it with that "),
    ],
)
def test_a_batch_that_a_command_does_not_receive_is_told(
    recorder: Recorder, stream: StreamId, asked: JudgeSettings, told: str | None
) -> None:
    """A judge that answers at once never looks at batches."""
    messages = [*batches_not_received(with_batch(recorder, stream, 4).state, asked)]

    starts = [told.format("its requests are not sent again; ")] if told else []
    assert [
        message[: len(start)] for message, start in zip(messages, starts, strict=True)
    ] == starts


@pytest.mark.parametrize(
    ("stream", "remedy"),
    [
        (STREAM, "`tourney batch wait` receives them"),
        (OTHER, "receive them with the settings of tournament 'other'"),
    ],
)
def test_judging_is_not_done_while_a_batch_holds_its_queries(
    recorder: Recorder,
    terminal: ScriptedTerminal,
    stream: StreamId,
    remedy: str,
) -> None:
    """Ratings would be published that lack them; they are not sent a second time, either."""
    later, direct = with_batch(recorder, stream, 3), preferring_tuned()
    chosen = plan(later, terminal)

    judge_with_consent(later, chosen, ScriptedBackends(judge=direct), terminal.console)
    with pytest.raises(WorkInFlight) as caught:
        require_none_in_flight(later.state, chosen.task)

    assert len(direct.asked) == 1
    assert str(caught.value) == f"3 queries to 'reference' in batches with the provider; {remedy}"


def test_answered_queries_and_those_of_other_prompts_keep_nobody_waiting(
    recorder: Recorder,
) -> None:
    """A merge may bring verdicts before the batch does; a pilot is done when its prompts are."""
    asked = keys(recorder, P1)
    later = with_batch(recorder, STREAM, len(asked))

    require_none_in_flight(later.state, JudgeTask(judge(), [P2], retries=0))
    with pytest.raises(WorkInFlight, match=r"^2 queries to 'reference'"):
        require_none_in_flight(later.state, JudgeTask(judge(), [P1], retries=0))
    later.ledger.append(OTHER, [verdict(each) for each in asked])
    later.catch_up()
    require_none_in_flight(later.state, JudgeTask(judge(), [P1], retries=0))


def keys(recorder: Recorder, *prompts: PromptId) -> list[Digest]:
    """Return the keys of the free judge's open queries."""
    queries = open_queries(recorder.state, prompts, judge(), retries=0)
    return [query.asked.query_key for query in queries]


def with_batch(recorder: Recorder, stream: StreamId, n_queries: int) -> Recorder:
    """Return the tournament once a batch of a tournament is in flight; the judge was in batches."""
    batch = planned_batch(*keys(recorder, P1, P2)[:n_queries])
    if n_queries:
        recorder.ledger.append(stream, [batch, sent(batch.batch_key)])
    return Recorder(recorder.ledger, STREAM)
