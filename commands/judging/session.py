"""Use case: judge what is open, within a cap and with consent.

`plan_judging` reads the settings once: who is asked, at what price, under which cap, and how
batches are sent. Everything after it works with that plan.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError, NoCredentials
from commands.judging.batches import judge_in_batches, reconciling, resume_batches
from commands.judging.in_flight import batches_not_received, require_none_in_flight
from commands.judging.judge import JudgeTask, JudgingSummary, judge_open, open_now
from commands.judging.panel import judge_of_mode
from commands.judging.recovery import BatchOptions, Polling
from commands.ports import Backends, Console
from commands.settings.schema import JudgeSection, Settings
from commands.spending.approval import approve, require_someone
from commands.spending.budget import require_price
from commands.spending.consent import ANTHROPIC_KEYS, ANTHROPIC_PROVIDERS, Offer, SpendingOptions
from commands.spending.endpoints import spent_at_endpoints
from commands.spending.pricing import FREE_OF_CHARGE, PriceBook, price_book
from ledger.events.ratings import Mode
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId
from projections.tournament.progress import AskingRules
from projections.tournament.state import Tournament


@dataclass(frozen=True)
class JudgingOptions:
    """Which judge a command asks, and whether it waits for batches."""

    mode: Mode = "headline"
    judge: str | None = None  # by --judge; None: the mode's judge
    waits: bool = True
    spending: SpendingOptions = field(default_factory=SpendingOptions)


@dataclass(frozen=True)
class JudgingPlan:
    """What is to be judged, how batches are sent, and how far the command may spend."""

    task: JudgeTask
    batch_options: BatchOptions
    spending: SpendingOptions

    @property
    def judge(self) -> JudgeSettings:
        """Who is asked."""
        return self.task.judge


def asking_rules(section: JudgeSection) -> AskingRules:
    """Return when a judge is asked again, and when it is not asked at all."""
    return AskingRules(section.retries, skip_identical=section.skip_identical)


def chosen_judge(
    state: Tournament, settings: Settings, folder: Path, options: JudgingOptions
) -> JudgeSettings:
    """Return the judge that was named, or the mode's judge.

    Raises:
        ConfigurationError: The name is not on the panel.
    """
    named = options.judge or judge_of_mode(settings, options.mode, folder).judge_id
    try:
        return state.judge(JudgeId(named))
    except KeyError as error:
        panel = ", ".join(judge.judge_id for judge in state.panel)
        raise ConfigurationError([f"--judge {named!r} is not on the panel: {panel}"]) from error


def plan_judging(
    recorder: Recorder,
    settings: Settings,
    folder: Path,
    prompts: Collection[PromptId],
    options: JudgingOptions,
    console: Console,
) -> JudgingPlan:
    """Read from the settings who is asked, at what price, under which cap, and how.

    Raises:
        ConfigurationError: --judge names nobody, or --no-wait goes with a judge without batches.
    """
    judge = chosen_judge(recorder.state, settings, folder, options)
    if not options.waits and not judge.is_batched:
        raise ConfigurationError(
            ["--no-wait needs provider 'anthropic-batch': other judges answer at once"]
        )
    book = price_book(settings, folder)
    batches = batch_options(recorder, settings.judge, book, options, console)
    cap_usd, spent_elsewhere_usd = _cap(recorder, settings.judge, book, options.spending)
    task = JudgeTask(
        judge=judge,
        prompts=prompts,
        rules=asking_rules(settings.judge),
        pricing_of=batches.pricing_of,
        max_usd=cap_usd,
        spent_elsewhere_usd=spent_elsewhere_usd,
        limit=options.spending.limit,
    )
    return JudgingPlan(task, batches, options.spending)


def batch_options(
    recorder: Recorder,
    section: JudgeSection,
    book: PriceBook,
    options: JudgingOptions,
    console: Console,
) -> BatchOptions:
    """Return how the settings want batches to be sent and received."""
    return BatchOptions(
        batch_queries=section.batch_queries,
        prewarm=section.prewarm and options.mode == "headline",
        polling=Polling(section.poll_s, section.settle_s, waits=options.waits),
        pricing_of=cache(lambda judge: book.pricing(judge, recorder.state)),
        tell=console.tell,
        on_progress=console.on_progress,
    )


def _cap(
    recorder: Recorder, section: JudgeSection, book: PriceBook, spending: SpendingOptions
) -> tuple[float | None, float]:
    """Return the cap that leaves less for judging, and what counts against it beside judging.

    --max-usd also covers what endpoint entrants cost; [judge] max_usd does not.
    """
    own = section.max_usd
    if spending.max_usd is None:
        return own, 0.0
    elsewhere_usd = spent_at_endpoints(recorder.ledger, recorder.state, book.table)
    if own is not None and own < spending.max_usd - elsewhere_usd:
        return own, 0.0
    return spending.max_usd, elsewhere_usd


def require_cap_can_be_kept(plan: JudgingPlan) -> None:
    """Find out before anything is generated whether the judge has a price, if there is a cap.

    Raises:
        Refused: It has none.
    """
    if plan.task.max_usd is not None:
        require_price(plan.task.pricing)


def require_key(judge: JudgeSettings) -> None:
    """Fail early where the provider needs a key and none is set.

    Raises:
        NoCredentials: There is none.
    """
    if judge.provider in ANTHROPIC_PROVIDERS and not any(
        os.environ.get(key) for key in ANTHROPIC_KEYS
    ):
        raise NoCredentials(f"judge {judge.judge_id!r} needs a key of Anthropic, and none is set")


def judge_with_consent(
    recorder: Recorder, plan: JudgingPlan, backends: Backends, console: Console
) -> JudgingSummary:
    """Judge what is open, after asking about what it costs.

    Raises:
        NoCredentials: The provider needs a key, and none is set.
        Refused: Nobody agreed, or the cap is too low.
        WorkInFlight: Batches go on, and nobody waits for them.
        ProviderError: The judge cannot be asked.
    """
    for message in batches_not_received(recorder.state, plan.judge):
        console.tell(message)
    if not plan.judge.is_batched:
        _approve(recorder, plan, console)
        make_judge = lambda: backends.judge(plan.judge)  # noqa: E731  # made only when it is asked
        return judge_open(recorder, plan.task, make_judge, on_progress=console.on_progress)
    make_port = cache(lambda: backends.batch_judge(plan.judge))
    with reporting_open_batches(recorder, console), reconciling(recorder, plan.task.rules):
        if recorder.state.open_batches:
            require_key(plan.judge)
            resume_batches(recorder, make_port, plan.batch_options)
        _approve(recorder, plan, console)
        return judge_in_batches(recorder, plan.task, make_port, plan.batch_options)


def judge_for_rating(
    recorder: Recorder, plan: JudgingPlan, backends: Backends, console: Console
) -> JudgingSummary:
    """Judge what is open, and make sure that nothing of it is still in flight.

    Raises:
        WorkInFlight: A batch asks some of it that this command does not receive.
    """
    judged = judge_with_consent(recorder, plan, backends, console)
    require_none_in_flight(recorder.state, plan.judge, plan.task.prompts)
    return judged


@contextmanager
def reporting_open_batches(recorder: Recorder, console: Console) -> Iterator[None]:
    """Say at Ctrl-C which batches go on without this process, and how to come back to them."""
    try:
        yield
    except KeyboardInterrupt:
        for batch in recorder.state.open_batches:
            name = batch.submitted.provider_batch_id if batch.submitted else "not yet known"
            n_queries = len(batch.planned.queries)
            console.tell(f"batch {name} keeps running: {n_queries} queries are billed")
        if recorder.state.open_batches:
            console.tell("`tourney batch wait` receives them, `tourney batch cancel` stops them")
        raise


def _approve(recorder: Recorder, plan: JudgingPlan, console: Console) -> None:
    """Ask whether the open queries may be paid for; free ones need no consent."""
    task = plan.task
    if task.pricing is FREE_OF_CHARGE:
        return
    queries = [query.asked for query in open_now(recorder, task)[: task.limit]]
    expected, once = task.pricing.expected_usd(queries), task.pricing.worst_usd(queries)
    if not queries or (task.judge.provider not in ANTHROPIC_PROVIDERS and not expected):
        return  # an endpoint without a price asks for no consent
    require_key(task.judge)
    require_someone(task.judge.model, plan.spending, console)
    offer = Offer(
        n_queries=len(queries),
        model=task.judge.model,
        expected_usd=expected,
        worst_usd=None if once is None else once * (1 + task.rules.retries),
        spent_usd=recorder.state.spent_usd + task.spent_elsewhere_usd,
        cap_usd=task.max_usd,
    )
    approve(offer, plan.spending, console)
