"""Use case: judge all open queries, with consent and within the cap.

`plan_judging` reads the settings once, and everything else works with its plan: the judge, its
prices, the cap, and how batches are sent.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from commands.batching.receiving import BatchOptions, BatchReceiver
from commands.batching.recovery import SideOf
from commands.decisions.commands import ReopenQuery
from commands.decisions.recorder import Recorder, rehearse
from commands.entrants.batches import EntrantSide
from commands.errors import ConfigurationError, WorkInFlight, counted
from commands.judging.batches import JudgeSide, attending_batches, judge_in_batches
from commands.judging.judge import (
    JudgeTask,
    JudgingSummary,
    begun_again,
    judge_open,
)
from commands.judging.panel import id_of_mode, keys_needed, section_of
from commands.judging.unreadable import nothing_judged
from commands.judging.waves import in_waves, may_stop
from commands.ports import Backends, BatchAnswer, Batches, BatchJudge, BatchJudgeOf, Console
from commands.settings.api_keys import require_keys
from commands.settings.schema import JudgeSection, Settings
from commands.settings.servers import is_on_own_network
from commands.spending import budget, consent, pricing
from commands.spending.endpoints import Request
from commands.spending.offer import PAID_PROVIDERS, Offer, SpendingOptions, dollars
from ledger.events.judging import FailureReason
from ledger.events.ratings import Mode
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, JudgeId, PromptId
from projections.tournament.batches import Batch
from projections.tournament.matches import pairings
from projections.tournament.remaining import (
    OpenQuery,
    WhichPairs,
    awaited_queries,
    repeats_of,
    without_gold,
)
from projections.tournament.rewording import rewordings
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
    named = options.judge or id_of_mode(settings, options.mode, folder)
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
    scored = [answer.asked for answer in task.answers]
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


def agreed_to_all(
    recorder: Recorder,
    plan: JudgingPlan,
    requests: Iterable[Request],
    book: pricing.PriceBook,
    console: Console,
) -> JudgingOptions:
    """Ask for consent to generating and judging at once, if judging costs money.

    Returns:
        The plan's options, by which the user agreed to both.

    Raises:
        Refused: A cap is too low for judging even if the responses to come are as short as may be,
            or for that and generating together; or the user did not confirm. Nothing was sent.
    """
    task, state, spending = plan.task, recorder.state, plan.options.spending
    generating = consent.offer_of_requests(recorder, requests, book, spending)
    agreed = replace(plan.options, spending=replace(spending, agreed=True))
    if task.pricing is pricing.FREE_OF_CHARGE:
        if generating is None or not may_stop(state, task):
            return plan.options
        consent.require_consent(replace(generating, may_stop=True), spending, console)
        return agreed  # to all waves: the user is asked once
    short, long = (_all_queries(state, task, longest=longest) for longest in (False, True))
    if not long or not needs_consent(plan, long):
        return plan.options
    most_usd = task.pricing.expected_usd(long)
    judging = replace(
        offer_of_queries(state, task, long), expected_usd=task.pricing.expected_usd(short)
    )
    both = judging if generating is None else judging.with_other(generating)
    consent.require_allowed([judging, both], spending, console)
    _require_first_can_be_sent(state, task, short, generating)
    _tell_bill(judging, most_usd, generating, console)
    both = replace(judging, expected_usd=most_usd)
    both = both if generating is None else both.with_other(generating)
    consent.require_yes(both, spending, console)
    return agreed


def _tell_bill(
    judging: Offer, most_usd: float | None, generating: Offer | None, console: Console
) -> None:
    """Tell what both steps cost; `most_usd` is what judging the longest responses costs."""
    least, most = dollars(judging.expected_usd), dollars(most_usd)
    about = least if least == most else f"{least} to {most} by the length of the responses"
    console.tell(
        f"judging: {judging.requests}, about {about}, at worst {dollars(judging.worst_usd)}"
    )
    if generating is not None:
        console.tell(
            f"generating: {generating.requests}, about {dollars(generating.expected_usd)}, at worst"
            f" {dollars(generating.worst_usd)}"
        )


def _require_first_can_be_sent(
    state: Tournament, task: JudgeTask, queries: Sequence[JudgeQuery], generating: Offer | None
) -> None:
    """Require that the first query's worst case fits under each cap, after generating."""
    if task.max_usd is None:
        return
    first_usd = [task.pricing.worst_usd(queries[:1]) or 0.0]
    bound_usd = state.spent_usd + task.spent_elsewhere_usd + budget.at_risk_usd(state)
    budget.n_affordable(first_usd, cap_usd=task.max_usd, bound_usd=bound_usd)
    if generating is not None and generating.cap_usd is not None:
        bound_usd = budget.everything_usd(state) + (generating.expected_usd or 0.0)
        budget.n_affordable(first_usd, cap_usd=generating.cap_usd, bound_usd=bound_usd)


def _all_queries(state: Tournament, task: JudgeTask, *, longest: bool) -> Sequence[JudgeQuery]:
    """Return what will be asked once all responses are there, as long or as short as may be."""
    later = awaited_queries(
        state, task.prompts, task.judge, task.retries, longest=longest, only=task.only
    )
    return [query.asked for query in (*task.open_in(state), *later)]


def needs_consent(plan: JudgingPlan, queries: Sequence[JudgeQuery]) -> bool:
    """Say whether queries cost money; without a price they may, on a server of somebody else."""
    if plan.judge.provider in PAID_PROVIDERS:
        return True
    expected_usd = plan.task.pricing.expected_usd(queries)
    if expected_usd is not None:
        return expected_usd > 0
    return not is_on_own_network(section_of(plan.settings, plan.judge).base_url)


def offer_of_queries(state: Tournament, task: JudgeTask, queries: Sequence[JudgeQuery]) -> Offer:
    """Return what queries to a judge cost, retries included."""
    expected_usd, once_usd = task.pricing.expected_usd(queries), task.pricing.worst_usd(queries)
    return Offer(
        n_queries=len(queries),
        models=(task.judge.model,),
        expected_usd=expected_usd,
        worst_usd=None if once_usd is None else once_usd * (1 + task.retries),
        spent_usd=state.spent_usd + task.spent_elsewhere_usd,
        cap_usd=task.max_usd,
        unpriced=(task.judge.model,) if expected_usd is None else (),
        may_stop=may_stop(state, task),
    )


def batch_ports(settings: Settings, backends: Backends, state: Tournament) -> BatchJudgeOf:
    """Return the providers of judges' batches, each made once and only if its API key is set."""

    def port_of(judge: JudgeSettings) -> BatchJudge:
        require_keys(keys_needed(settings, [judge]))
        return backends.batch_judge(judge, state.refused_parameters)

    return cache(port_of)


def batch_port(
    state: Tournament, batch: Batch, settings: Settings, backends: Backends
) -> Batches[Any, BatchAnswer]:
    """Return the provider of a batch."""
    asked = batch.planned.judge
    if state.is_to_entrant(batch):
        return backends.batch_responder(state.entrants[asked])
    return batch_ports(settings, backends, state)(state.judges[asked])


def judge_with_consent(
    recorder: Recorder, plan: JudgingPlan, backends: Backends, console: Console
) -> JudgingSummary:
    """Judge all open queries, after asking for consent if they cost money.

    Raises:
        NoCredentials: The provider needs an API key, and none is set.
        Refused: The user did not confirm, or the cap is too low.
        WorkInFlight: Batches go on, and the command does not wait for them.
        ProviderError: The judge fails.
    """
    for message in batches_not_received(recorder.state, plan.judge):
        console.tell(message)
    task = begun_again(recorder, plan.task)
    if plan.judge.is_batched:
        port_of = batch_ports(plan.settings, backends, recorder.state)
        side = JudgeSide(recorder, port_of, plan.batch_options)
        with attending_batches(recorder, console.tell):
            reception = BatchReceiver(
                recorder,
                lambda _: side,
                plan.batch_options,
                wants=lambda batch: not recorder.state.is_to_entrant(batch),
            )
            reception.receive_earlier()
            _approve(recorder, plan, console)
            judge_wave = partial(judge_in_batches, recorder, port_of=port_of, reception=reception)
            return in_waves(recorder, task, judge_wave, console.tell)
    _approve(recorder, plan, console)
    judge_wave = partial(
        judge_open,
        recorder,
        judge_of=backends.judge,
        on_progress=console.on_progress,
        tell=console.tell,
    )
    return in_waves(recorder, task, judge_wave, console.tell)


def batches_not_received(state: Tournament, judge: JudgeSettings) -> Iterator[str]:
    """Yield a message for each batch in flight that this command does not receive."""
    for batch in state.batches.values():
        if batch.is_open and batch.stream != state.stream:
            yield (
                f"a batch of tournament {batch.stream!r} is in flight; its requests are not sent"
                " again; receive it with that tournament's settings"
            )
        elif batch.is_open and (not judge.is_batched or state.is_to_entrant(batch)):
            yield (
                f"a batch to {batch.planned.judge.label!r} is in flight; its requests are not sent"
                " again; `tourney batch wait` receives it"
            )


def require_none_in_flight(state: Tournament, task: JudgeTask) -> None:
    """Require that no batch in flight holds queries of a task without an answer.

    Raises:
        WorkInFlight: One does: it is another tournament's, or the judge's provider was changed.
    """
    asked = _in_flight(state, task)
    for batch in state.batches.values():
        if batch.is_open and not asked.isdisjoint(state.queries_of(batch)):
            is_own = batch.stream == state.stream
            settings = f"receive them with the settings of tournament {batch.stream!r}"
            raise WorkInFlight(
                f"{counted(len(asked), 'query', 'queries')} to {task.judge.judge_id!r} in batches"
                f" with the provider;"
                f" {'`tourney batch wait` receives them' if is_own else settings}"
            )


def _in_flight(state: Tournament, task: JudgeTask) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    asked = frozenset(task.keys_in(state)) & state.in_flight
    return frozenset(key for key in asked if not state.is_answered(key))


def wait_for_batches(
    recorder: Recorder, settings: Settings, folder: Path, backends: Backends, console: Console
) -> None:
    """Receive the batches in flight, of judges and entrants, and reconcile; send nothing.

    Raises:
        NoCredentials: A provider needs an API key, and none is set.
        ProviderError: A provider fails for good.
    """
    how = BatchOptions(console.tell, console.on_progress)
    side_of = batch_sides(recorder, settings, folder, backends, console)
    with attending_batches(recorder, console.tell):
        BatchReceiver(recorder, side_of, how).receive_all()


def batch_sides(
    recorder: Recorder, settings: Settings, folder: Path, backends: Backends, console: Console
) -> SideOf:
    """Return the sides of a tournament's batches: judges, and entrants."""
    book = pricing.price_book(settings, folder)
    how = batch_options(recorder, settings.judge, book, JudgingOptions(), console)
    judges = JudgeSide(recorder, batch_ports(settings, backends, recorder.state), how)
    entrants = EntrantSide(recorder, cache(backends.batch_responder), book.table, how.tell)
    return lambda batch: entrants if recorder.state.is_to_entrant(batch) else judges


def _approve(recorder: Recorder, plan: JudgingPlan, console: Console) -> None:
    """Ask for consent to the open queries, and open failures again as --retry says."""
    task, reopened = plan.task, _reopened(recorder.state, plan)
    state = rehearse(recorder.state, *reopened)
    queries = task.open_in(state)[: task.limit]
    pairs = [query for query in queries if isinstance(query, OpenQuery)]
    for rewording in rewordings(state, pairs, task.judge):
        console.tell(rewording.sentence)
    asked = [query.asked for query in queries]
    if asked and needs_consent(plan, asked):
        require_keys(keys_needed(plan.settings, [task.judge]))
        offer = offer_of_queries(recorder.state, task, asked)
        consent.require_consent(offer, plan.options.spending, console)
    if plan.options.retry:
        n_open = recorder.record(*reopened)
        console.tell(f"{counted(n_open, 'failed query', 'failed queries')} will be asked again")


def _reopened(state: Tournament, plan: JudgingPlan) -> tuple[ReopenQuery, ...]:
    """Return how to open the judge's queries again that failed for the reasons of --retry."""
    if not plan.options.retry:
        return ()
    asked = dict.fromkeys(plan.task.keys_in(state))
    failures = map(state.query_failures.get, asked)
    return tuple(
        ReopenQuery(failure)
        for failure in failures
        if failure and failure.reason in plan.options.retry
    )
