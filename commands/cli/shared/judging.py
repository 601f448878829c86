"""Judging from the command line: which judge, at what price, with whose consent, and how."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from commands.backends.wiring import make_batch_judge, make_generator, make_judge
from commands.cli.shared.money import (
    require_landed,
    settle_served,
    spent_at_servers,
    tell_of_batches,
)
from commands.cli.shared.output import say
from commands.cli.shared.terminal import agree_to, require_somebody
from commands.cli.shared.workspace import Workshop
from commands.decisions.recorder import Recorder
from commands.entrants.generate import Generated, generate_owed
from commands.errors import ConfigurationError, NoCredentials
from commands.judging.batches import judge_in_batches, reconciling, take_up
from commands.judging.judge import Judged, JudgeTask, judge_open, open_now
from commands.judging.panel import judge_of_mode
from commands.judging.recovery import Batching, Waiting
from commands.ports import OnProgress
from commands.runs.run import asking_rules
from commands.spending.budget import require_price
from commands.spending.consent import ANTHROPIC_KEYS, OF_ANTHROPIC, Offer
from commands.spending.endpoints import Request
from commands.spending.pricing import FREE_OF_CHARGE, prices_of, pricing_for
from ledger.events.ratings import Mode
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId
from projections.tournament.progress import owed_responses
from projections.tournament.state import Tournament


@dataclass(frozen=True)
class Terms:
    """What was said on the command line about what may cost."""

    mode: Mode = "headline"
    judge: str | None = None
    agreed: bool = False
    max_usd: float | None = None
    waits: bool = True
    limit: int | None = None


def chosen_judge(state: Tournament, place: Workshop, terms: Terms) -> JudgeSettings:
    """Return the judge that was named, or that the mode asks."""
    named = terms.judge or judge_of_mode(place.settings, terms.mode, place.folder).judge_id
    try:
        return state.judge(JudgeId(named))
    except KeyError as error:
        panel = ", ".join(judge.judge_id for judge in state.panel)
        raise ConfigurationError([f"--judge {named!r} is not on the panel: {panel}"]) from error


def require_able(judge: JudgeSettings, *, agreed: bool) -> None:
    """Find out at once what would be found out late: no key, or nobody to agree.

    Raises:
        NoCredentials: The provider needs a key.
        Refused: It costs, nobody agreed, and nobody is there to ask.
    """
    if judge.provider in OF_ANTHROPIC and not any(os.environ.get(key) for key in ANTHROPIC_KEYS):
        raise NoCredentials(f"judge {judge.judge_id!r} needs a key of Anthropic, and none is set")
    require_somebody(judge.model, agreed=agreed)


def require_cap_can_be_kept(recorder: Recorder, place: Workshop, terms: Terms) -> None:
    """Find out before anything is generated that the judge has no price, and there is a cap.

    Raises:
        Refused: So it is.
    """
    judge = chosen_judge(recorder.state, place, terms)
    if terms.max_usd is not None or place.settings.judge.max_usd is not None:
        require_price(pricing_for(place.settings, place.folder, judge, recorder.state))


def judge_with_consent(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Judged:
    """Judge what is open, after asking about what it costs."""
    judge = chosen_judge(recorder.state, place, terms)
    how = batching(place, recorder, terms, on_progress)
    cap = _cap(recorder, place, terms)
    task = JudgeTask(
        judge=judge,
        prompts=prompts,
        rules=asking_rules(place.settings),
        pricing_of=how.pricing_of,
        max_usd=cap.usd,
        spent_elsewhere_usd=cap.spent_elsewhere_usd,
        limit=terms.limit,
    )
    if not terms.waits and not judge.is_batched:
        raise ConfigurationError(["--no-wait is for provider 'anthropic-batch': others are here"])
    tell_of_batches(recorder.state, judge)
    if not judge.is_batched:
        _settle_money(recorder, task, terms)
        return judge_open(
            recorder,
            task,
            lambda: make_judge(place.settings, judge, place.folder),
            on_progress=on_progress,
        )
    make_port = cache(lambda: make_batch_judge(place.settings, judge))
    with telling_what_is_billed(recorder), reconciling(recorder, task.rules):
        if recorder.state.open_batches:
            require_able(judge, agreed=True)
            take_up(recorder, make_port, how)
        _settle_money(recorder, task, terms)
        return judge_in_batches(recorder, task, make_port, how)


def batching(
    place: Workshop, recorder: Recorder, terms: Terms, on_progress: OnProgress
) -> Batching:
    """Return how the settings want batches to be handled."""
    asked = place.settings.judge
    return Batching(
        batch_queries=asked.batch_queries,
        prewarm=asked.prewarm and terms.mode == "headline",
        waiting=Waiting(asked.poll_s, asked.settle_s, waits=terms.waits),
        pricing_of=cache(
            lambda judge: pricing_for(place.settings, place.folder, judge, recorder.state)
        ),
        tell=say,
        on_progress=on_progress,
    )


def judge_to_be_rated(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Judged:
    """Judge what is open, and make sure that nothing of it is still on its way.

    Raises:
        WorkInFlight: A batch asks some of it that this command does not receive.
    """
    judged = judge_with_consent(recorder, place, terms, prompts, on_progress)
    require_landed(recorder.state, chosen_judge(recorder.state, place, terms), prompts)
    return judged


@contextmanager
def telling_what_is_billed(recorder: Recorder) -> Iterator[None]:
    """Say at Ctrl-C what goes on without us, and how to come back to it."""
    try:
        yield
    except KeyboardInterrupt:
        for batch in recorder.state.open_batches:
            name = batch.submitted.provider_batch_id if batch.submitted else "not yet known"
            say(f"batch {name} keeps running: {len(batch.planned.queries)} queries are billed")
        if recorder.state.open_batches:
            say("`tourney batch wait` receives them, `tourney batch cancel` stops them")
        raise


def _settle_money(recorder: Recorder, task: JudgeTask, terms: Terms) -> None:
    """Ask whether what is open may be paid for; what is free is not asked about."""
    if task.pricing is FREE_OF_CHARGE:
        return
    queries = [query.asked for query in open_now(recorder, task)[: task.limit]]
    expected, once = task.pricing.expected_usd(queries), task.pricing.worst_usd(queries)
    if not queries or (task.judge.provider not in OF_ANTHROPIC and not expected):
        return  # a local server without a price is its owner's
    require_able(task.judge, agreed=terms.agreed)
    offer = Offer(
        n_queries=len(queries),
        model=task.judge.model,
        expected_usd=expected,
        worst_usd=None if once is None else once * (1 + task.rules.retries),
        spent_usd=recorder.state.spent_usd + task.spent_elsewhere_usd,
        cap_usd=task.max_usd,
    )
    agree_to(offer, agreed=terms.agreed)


class _Cap(NamedTuple):
    """A cap as somebody said it, and what counts against it beside judging."""

    usd: float | None
    spent_elsewhere_usd: float


def _cap(recorder: Recorder, place: Workshop, terms: Terms) -> _Cap:
    """Return the cap that leaves less for judging; --max-usd is on what entrants cost, too."""
    lower, own = _Cap(None, 0.0), place.settings.judge.max_usd
    if terms.max_usd is not None:
        prices = prices_of(place.settings, place.folder)
        lower = _Cap(terms.max_usd, spent_at_servers(recorder, prices))
    if own is not None and (lower.usd is None or own < lower.usd - lower.spent_elsewhere_usd):
        lower = _Cap(own, 0.0)
    return lower


def generate_with_consent(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Generated:
    """Generate what is owed, after asking about what it costs."""
    owed = islice(owed_responses(recorder.state, prompts), terms.limit)
    requests = [Request(cell.entrant, cell.prompt.text) for cell in owed]
    settle_served(recorder, place, requests, agreed=terms.agreed, max_usd=terms.max_usd)
    return generate_owed(
        recorder,
        lambda: make_generator(place.settings),
        prompts,
        on_progress=on_progress,
        limit=terms.limit,
    )


def generate_to_be_judged(
    recorder: Recorder,
    place: Workshop,
    terms: Terms,
    prompts: Collection[PromptId],
    on_progress: OnProgress,
) -> Generated:
    """Generate what is owed, if the judge may be asked about it then."""
    if owed_responses(recorder.state, prompts):
        require_cap_can_be_kept(recorder, place, terms)
    return generate_with_consent(recorder, place, terms, prompts, on_progress)
