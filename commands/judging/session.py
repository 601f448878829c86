"""Use case: judge all open queries as planned, with consent and within the cap."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from commands.batching.receiving import BatchOptions, BatchReceiver
from commands.batching.recovery import SideOf
from commands.decisions.commands import ReopenQuery
from commands.decisions.recorder import Recorder, rehearse
from commands.entrants.batches import EntrantSide
from commands.errors import WorkInFlight, counted
from commands.judging.batches import JudgeSide, attending_batches, judge_in_batches
from commands.judging.judge import JudgeTask, JudgingSummary, judge_open, resumed
from commands.judging.panel import keys_needed, section_of
from commands.judging.plan import JudgingOptions, JudgingPlan, batch_options
from commands.judging.waves import in_waves, may_stop
from commands.ports import Backends, BatchAnswer, Batches, BatchJudge, BatchJudgeOf, Console
from commands.settings.api_keys import require_keys
from commands.settings.schema import Settings
from commands.settings.servers import is_on_own_network
from commands.spending import budget, consent, pricing
from commands.spending.budget import PAID_PROVIDERS, Offer, dollars
from commands.spending.endpoints import Request
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.tournament.remaining import OpenQuery, awaited_queries
from projections.tournament.requests import Batch
from projections.tournament.rewording import rewordings
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery


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
    shortest = _all_queries(state, task, longest=False)
    longest = _all_queries(state, task, longest=True)
    if not longest or not needs_consent(plan, longest):
        return plan.options
    at_most = offer_of_queries(state, task, longest)
    at_least = replace(at_most, expected_usd=task.pricing.expected_usd(shortest))
    consent.require_allowed([at_least, _with(at_least, generating)], spending, console)
    _require_first_can_be_sent(state, task, shortest, generating)
    _tell_bill(at_least, at_most, generating, console)
    consent.require_yes(_with(at_most, generating), spending, console)
    return agreed


def _with(judging: Offer, generating: Offer | None) -> Offer:
    """Return the offer of both steps."""
    return judging if generating is None else judging.with_other(generating)


def _tell_bill(at_least: Offer, at_most: Offer, generating: Offer | None, console: Console) -> None:
    """Tell what both steps cost, by whether the responses to come are short or long."""
    least, most = dollars(at_least.expected_usd), dollars(at_most.expected_usd)
    about = least if least == most else f"{least} to {most} by the length of the responses"
    console.tell(
        f"judging: {at_most.requests}, about {about}, at worst {dollars(at_most.worst_usd)}"
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
    reference = batch.planned.judge
    if state.is_to_entrant(batch):
        return backends.batch_responder(state.entrants[reference])
    return batch_ports(settings, backends, state)(state.judges[reference])


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
    task = resumed(recorder, plan.task)
    if plan.judge.is_batched:
        return _in_batches_with_consent(recorder, plan, task, backends, console)
    _approve(recorder, plan, console)

    def judge_wave(wave: JudgeTask) -> JudgingSummary:
        return judge_open(
            recorder, wave, backends.judge, on_progress=console.on_progress, tell=console.tell
        )

    return in_waves(recorder, task, judge_wave, console.tell)


def _in_batches_with_consent(
    recorder: Recorder, plan: JudgingPlan, task: JudgeTask, backends: Backends, console: Console
) -> JudgingSummary:
    """Receive the judge's batches in flight, ask for consent, and judge in further batches."""
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

        def judge_wave(wave: JudgeTask) -> JudgingSummary:
            return judge_in_batches(recorder, wave, port_of, reception)

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
    query_keys = _in_flight(state, task)
    for batch in state.batches.values():
        if batch.is_open and not query_keys.isdisjoint(state.queries_of(batch)):
            remedy = "`tourney batch wait` receives them"
            if batch.stream != state.stream:
                remedy = f"receive them with the settings of tournament {batch.stream!r}"
            queries = counted(len(query_keys), "query", "queries")
            raise WorkInFlight(
                f"{queries} to {task.judge.judge_id!r} in batches with the provider; {remedy}"
            )


def _in_flight(state: Tournament, task: JudgeTask) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    query_keys = frozenset(task.keys_in(state)) & state.in_flight
    return frozenset(key for key in query_keys if not state.is_answered(key))


def wait_for_batches(
    recorder: Recorder, settings: Settings, folder: Path, backends: Backends, console: Console
) -> None:
    """Receive the batches in flight, of judges and entrants, and reconcile; send nothing.

    Raises:
        NoCredentials: A provider needs an API key, and none is set.
        ProviderError: A provider fails for good.
    """
    options = BatchOptions(console.tell, console.on_progress)
    side_of = batch_sides(recorder, settings, folder, backends, console)
    with attending_batches(recorder, console.tell):
        BatchReceiver(recorder, side_of, options).receive_all()


def batch_sides(
    recorder: Recorder, settings: Settings, folder: Path, backends: Backends, console: Console
) -> SideOf:
    """Return the sides of a tournament's batches: judges, and entrants."""
    book = pricing.price_book(settings, folder)
    options = batch_options(recorder, settings.judge, book, JudgingOptions(), console)
    judges = JudgeSide(recorder, batch_ports(settings, backends, recorder.state), options)
    entrants = EntrantSide(recorder, cache(backends.batch_responder), book.table, console.tell)
    return lambda batch: entrants if recorder.state.is_to_entrant(batch) else judges


def _approve(recorder: Recorder, plan: JudgingPlan, console: Console) -> None:
    """Ask for consent to the open queries, and open failures again as --retry says."""
    task, reopenings = plan.task, _reopenings(recorder.state, plan)
    state = rehearse(recorder.state, *reopenings)
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
        n_open = recorder.record(*reopenings)
        console.tell(f"{counted(n_open, 'failed query', 'failed queries')} will be asked again")


def _reopenings(state: Tournament, plan: JudgingPlan) -> tuple[ReopenQuery, ...]:
    """Return how to open the judge's queries again that failed for the reasons of --retry."""
    if not plan.options.retry:
        return ()
    query_keys = dict.fromkeys(plan.task.keys_in(state))
    failures = map(state.query_failures.get, query_keys)
    return tuple(
        ReopenQuery(failure)
        for failure in failures
        if failure and failure.reason in plan.options.retry
    )
