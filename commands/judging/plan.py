"""Plan by the settings and options how a judge is asked: price, cap and batches."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

from commands.batching.receiving import BatchOptions
from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError
from commands.judging.judge import JudgeTask
from commands.judging.panel import id_of_mode
from commands.judging.unreadable import nothing_judged
from commands.ports import Console
from commands.settings.schema import JudgeSection, Settings
from commands.spending import budget, pricing
from commands.spending.budget import SpendingOptions
from ledger.events.judging import FailureReason
from ledger.events.ratings import Mode
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId
from projections.tournament.matches import pairings
from projections.tournament.remaining import WhichPairs, repeats_of, without_gold
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery


@dataclass(frozen=True)
class JudgingOptions:
    """A command's options: which judge, whether to wait for batches, and how far to spend."""

    mode: Mode = "headline"
    judge: str | None = None  # its id; None: the mode's judge
    waits: bool = True
    retry: frozenset[FailureReason] = frozenset()  # failures to ask again, though they are final
    repeat: int | None = None  # ask so many queries with a verdict again, and nothing else
    spending: SpendingOptions = field(default_factory=SpendingOptions)


@dataclass(frozen=True)
class JudgingPlan:
    """The task, how batches are sent, and how far the command may spend."""

    task: JudgeTask
    settings: Settings
    batch_options: BatchOptions
    options: JudgingOptions

    @property
    def judge(self) -> JudgeSettings:
        """The judge that is asked."""
        return self.task.judge


def chosen_judge(
    state: Tournament, settings: Settings, folder: Path, options: JudgingOptions
) -> JudgeSettings:
    """Return the judge that the options name, or else the mode's judge.

    Raises:
        ConfigurationError: No judge of the panel has that id.
    """
    name = options.judge or id_of_mode(settings, options.mode, folder)
    try:
        return state.judge(JudgeId(name))
    except KeyError as error:
        panel = ", ".join(judge.judge_id for judge in state.panel)
        raise ConfigurationError([f"--judge {name!r} is not on the panel: {panel}"]) from error


def plan_judging(
    recorder: Recorder,
    settings: Settings,
    folder: Path,
    prompts: Collection[PromptId],
    options: JudgingOptions,
    console: Console,
    only: WhichPairs = None,
) -> JudgingPlan:
    """Plan by the settings which judge compares the responses to prompts, and how.

    Raises:
        ConfigurationError: --judge is not on the panel, --no-wait is given for a judge that is not
            asked in batches, or nothing can be judged.
    """
    judge = chosen_judge(recorder.state, settings, folder, options)
    if not pairings(recorder.state, prompts):
        raise ConfigurationError([*nothing_judged(without_gold(recorder.state, prompts))])
    retries = settings.judge.retries
    if options.repeat is None:
        task = JudgeTask(judge, prompts, retries, only=only)
    else:
        sample = islice(repeats_of(recorder.state, prompts, judge), options.repeat)
        task = JudgeTask(judge, (), retries, repeats=[*sample])
    return plan_task(recorder, settings, folder, task, options, console)


def plan_task(
    recorder: Recorder,
    settings: Settings,
    folder: Path,
    task: JudgeTask,
    options: JudgingOptions,
    console: Console,
) -> JudgingPlan:
    """Plan by the settings at what price, under which cap and how a judge is asked.

    Raises:
        ConfigurationError: --no-wait is given for a judge that is not asked in batches.
    """
    if not options.waits and not task.judge.is_batched and not settings.batched:
        raise ConfigurationError(
            ["--no-wait needs a provider with batches; this judge answers at once: leave it out"]
        )
    book = pricing.price_book(settings, folder)
    scored = [question.asked for question in task.score_questions]
    batches = batch_options(recorder, settings.judge, book, options, console, scored)
    spending = options.spending
    cap_usd, spent_elsewhere_usd = budget.strictest_cap(
        recorder.state, of_judges=settings.judge.max_usd, of_all=spending.max_usd
    )
    task = replace(
        task,
        pricing=batches.pricing_of(task.judge),
        max_usd=cap_usd,
        spent_elsewhere_usd=spent_elsewhere_usd,
        limit=spending.limit,
    )
    return JudgingPlan(task, settings, batches, options)


def batch_options(
    recorder: Recorder,
    section: JudgeSection,
    book: pricing.PriceBook,
    options: JudgingOptions,
    console: Console,
    scored: Sequence[JudgeQuery] = (),
) -> BatchOptions:
    """Return how batches are sent and received, by the settings and the options."""
    return BatchOptions(
        console.tell,
        console.on_progress,
        cache(lambda judge: book.pricing(judge, recorder.state, scored=scored)),
        waits=options.waits,
        prewarms=options.mode == "headline" and section.cache != "off",
    )


def require_cap_can_be_kept(plan: JudgingPlan) -> None:
    """Fail early if there is a cap and the judge has no price.

    Raises:
        PriceUnknown: It has none.
    """
    if plan.task.max_usd is not None and plan.task.pricing.worst_usd([]) is None:
        raise budget.PriceUnknown(plan.judge.model)
