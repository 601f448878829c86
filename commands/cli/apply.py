"""`tourney apply`: generate, judge and evaluate. The only commands that call models."""

from collections.abc import Collection
from typing import Annotated, Final, TypeVar

import typer

from commands.backends.wiring import READERS, ConfiguredBackends, backends_on, inferences_on
from commands.cli.shared import options
from commands.cli.shared.output import say
from commands.cli.shared.selection import ASKING, Selected, selecting
from commands.cli.shared.terminal import console
from commands.cli.shared.workspace import see_status, spending_of, tell_unanswered, workspace
from commands.entrants.generate import WantedResponses
from commands.entrants.session import generate_with_consent
from commands.errors import ConfigurationError, DoneWithGaps, counted
from commands.evaluating.evaluate import CODE_CHANGED, EvaluationCounts
from commands.evaluating.plan import evaluate_with_consent, plan_evaluations
from commands.judging.judge import JudgingSummary
from commands.judging.plan import JudgingOptions, JudgingPlan, plan_judging
from commands.judging.scoring import Scoring, require_judges, score_with_consent
from commands.judging.session import judge_with_consent, require_none_in_flight
from commands.judging.unreadable import tell_unreadable, tell_without_gold
from commands.runs.workspace import prompts_to_judge
from commands.spending.pricing import price_book
from ledger.events.judging import FINAL, MAY_CHANGE, FailureReason
from ledger.events.responses import ResponseFailureReason
from projections.tournament.remaining import n_waiting_pairs, response_counts
from projections.tournament.settlement import accounts_of
from projections.tournament.state import Tournament
from projections.tournament.waves import prompts_so_far

Retry = Annotated[
    str | None,
    typer.Option(
        metavar="REASONS",
        help="Ask again the queries that failed for these reasons, separated by commas: rejected,"
        " refused, truncated, unreadable or empty.",
    ),
]
RetryResponses = Annotated[
    str | None,
    typer.Option(
        metavar="REASONS",
        help="Ask again for the responses that failed for these reasons, separated by commas:"
        " rejected, refused, prompt_too_long or not_finite.",
    ),
]
_RESPONSE_FAILURES: Final = frozenset[ResponseFailureReason](
    {"rejected", "refused", "prompt_too_long", "not_finite"}  # out of memory: always
)
Reason = TypeVar("Reason", bound=str)


@selecting("mode", "engine", *ASKING)
def generate(ctx: Selected, retry: RetryResponses = None) -> None:
    """Generate the missing responses.

    Example: tourney apply generate --limit 10
    """
    selection = ctx.selection
    reasons = _named(retry, _RESPONSE_FAILURES)
    place = workspace(selection.config, selection.ledger)
    if selection.no_wait and not place.settings.batched:
        raise ConfigurationError(["--no-wait needs [generation] batch = true: leave it out"])
    prompts = prompts_to_judge(place.opening, place.settings, selection.mode)
    backends = backends_on(selection.engine, place.settings, place.folder, say)
    book = price_book(place.settings, place.folder)
    with place.recorder(say) as recorder, console() as talk:
        recorder.record(place.opening)
        wave = prompts_so_far(recorder.state, prompts)
        wanted = WantedResponses(wave, retry=reasons)
        done = generate_with_consent(
            recorder,
            wanted,
            backends,
            book,
            spending_of(selection),
            talk,
            waits=not selection.no_wait,
        )
        responses = response_counts(recorder.state, prompts)
    say(
        f"{done.n_missing} responses were missing: {done.n_generated} generated,"
        f" {done.n_failed} failed"
    )
    tell_unanswered(place, say)
    n_failed = sum(row.failed for row in responses)
    if n_failed and not selection.allow_gaps:
        raise DoneWithGaps(f"{counted(n_failed, 'response')} failed; {see_status(place)}")


@selecting("mode", *ASKING)
def judge(
    ctx: Selected,
    judge: options.AskedJudge = None,
    retry: Retry = None,
    repeat: options.Repeat = None,
) -> None:
    """Send all open queries to the judge.

    Example: tourney apply judge --yes --max-usd 20
    """
    selection = ctx.selection
    reasons = failure_reasons(retry)
    place = workspace(selection.config, selection.ledger)
    settings, folder = place.settings, place.folder
    prompts = prompts_to_judge(place.opening, settings, selection.mode)
    how = JudgingOptions(
        selection.mode,
        judge,
        waits=not selection.no_wait,
        retry=reasons,
        repeat=repeat,
        spending=spending_of(selection),
    )
    with place.recorder(say) as recorder, console() as talk:
        recorder.record(place.opening)
        n_looks = len(recorder.state.looks)
        plan = plan_judging(recorder, settings, folder, prompts, how, talk)
        done = judge_with_consent(recorder, plan, ConfiguredBackends(settings, folder), talk)
        state = recorder.state
        accounts = accounts_of(state, prompts, plan.judge)
        n_waiting = n_waiting_pairs(state, prompts_so_far(state, prompts), plan.judge)
    if repeat is not None:
        _tell_repeated(state, plan, done, allow_gaps=selection.allow_gaps)
        return
    asked = "requests" if plan.judge.is_together else "queries"
    say(
        f"{done.n_open} {asked} were open: {done.n_verdicts} answered with a verdict,"
        f" {done.n_failed} without; {done.n_reconciled} pairs reconciled"
    )
    tell_unreadable(state, prompts, plan.judge, say)
    tell_without_gold(state, prompts, say)
    require_none_in_flight(state, plan.task)
    n_gaps = sum(account.n_failed for account in accounts.values())
    gaps = []
    waiting = counted(n_waiting, "pair waits", "pairs wait")
    if n_waiting and len(state.looks) > n_looks:
        say(f"{waiting} for the next wave's responses: `tourney apply generate` goes on")
    elif n_waiting:
        gaps.append(f"{waiting} for responses: run `tourney apply generate` first")
    if n_gaps or done.n_failed:
        gaps.append(
            f"{n_gaps} pairs have no outcome, {done.n_failed} of these queries got no verdict;"
            f" {see_status(place)}"
        )
    if gaps and not selection.allow_gaps:
        raise DoneWithGaps("; ".join(gaps))


def _tell_repeated(
    state: Tournament, plan: JudgingPlan, done: JudgingSummary, *, allow_gaps: bool
) -> None:
    """Say what became of repeats, and where to see how many verdicts changed."""
    say(
        f"{counted(done.n_open, 'repeat was', 'repeats were')} open of"
        f" {len(plan.task.repeats)}: {done.n_verdicts} answered with a verdict, {done.n_failed}"
        f" without; see `tourney project bias --judge {plan.judge.judge_id}`"
    )
    require_none_in_flight(state, plan.task)
    if done.n_failed and not allow_gaps:
        raise DoneWithGaps(f"{counted(done.n_failed, 'repeat')} got no verdict")


def failure_reasons(said: str | None) -> frozenset[FailureReason]:
    """Return the failures that --retry names."""
    return _named(said, FINAL | MAY_CHANGE)


def _named(said: str | None, reasons: Collection[Reason]) -> frozenset[Reason]:
    known: dict[str, Reason] = {reason: reason for reason in sorted(reasons)}
    names = [] if said is None else [name.strip() for name in said.split(",")]
    if unknown := [name for name in names if name not in known]:
        fault = f"--retry {unknown[0]!r}: name some of {', '.join(known)}, separated by commas"
        raise ConfigurationError([fault])
    return frozenset(known[name] for name in names)


@selecting("engine", *ASKING)
def evaluate(
    ctx: Selected,
    entrants: options.Entrants = None,
    evaluations: options.Evaluations = None,
    retry: Retry = None,
) -> None:
    """Run the missing evaluation samples, and let judges score answers where a rubric is set.

    Example: tourney apply evaluate --entrant base
    """
    selection = ctx.selection
    reasons, spending = failure_reasons(retry), spending_of(selection)
    place = workspace(selection.config, selection.ledger)
    how = JudgingOptions(waits=not selection.no_wait, retry=reasons, spending=spending)
    with inferences_on(selection.engine, place.settings, say) as inference_of:
        planned = plan_evaluations(
            place.settings,
            place.folder,
            place.opening,
            inference_of,
            READERS,
            entrants=entrants or (),
            evaluations=evaluations or (),
        )
        book = price_book(place.settings, place.folder)
        with place.recorder(say) as recorder, console() as talk:
            recorder.record(place.opening)
            scoring = Scoring(planned.plans, place.settings, place.folder, how, talk)
            require_judges(recorder, scoring)
            done, n_gaps = evaluate_with_consent(recorder, planned, book, spending, talk)
            _tell_evaluated(done)
            backends = ConfiguredBackends(place.settings, place.folder)
            scored = score_with_consent(recorder, scoring, backends)
    if any(plan.scored_by for plan in planned.plans):
        answers = counted(scored.n_open, "answer had no score", "answers had no score")
        say(f"{answers}: {scored.n_scored} scored now; equal answers to a prompt are scored once")
    gaps = [
        *([f"{counted(n_gaps, 'sample')} could not be scored"] if n_gaps else []),
        *([f"{counted(scored.n_unscored, 'answer')} got no score"] if scored.n_unscored else []),
    ]
    if gaps and not selection.allow_gaps:
        raise DoneWithGaps(f"{', and '.join(gaps)}; see `tourney project metrics`")


def _tell_evaluated(done: EvaluationCounts) -> None:
    say(
        f"{done.n_missing} samples were missing: {done.n_observed} observed,"
        f" {done.n_unscorable} unscorable; see `tourney project metrics`"
    )
    if done.n_rescored:
        say(f"{counted(done.n_rescored, 'recorded sample')} got another score: {CODE_CHANGED}")
