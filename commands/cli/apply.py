"""`tourney apply`: the verbs that touch models."""

from typing import Annotated

import typer

from commands.backends.wiring import put_to_work
from commands.cli.shared.evaluations import Planned, mixed_scorings, n_given_up, plan_evaluations
from commands.cli.shared.judging import (
    Terms,
    chosen_judge,
    generate_with_consent,
    judge_with_consent,
)
from commands.cli.shared.money import require_landed, settle_served
from commands.cli.shared.options import (
    DEFAULT_CONFIG,
    AllowGapsOption,
    AskedOption,
    ConfigOption,
    EntrantOption,
    EvaluationOption,
    LedgerOption,
    LimitOption,
    MaxUsdOption,
    ModeOption,
    ProviderOption,
    YesOption,
)
from commands.cli.shared.output import say
from commands.cli.shared.terminal import progress_on_stderr
from commands.cli.shared.workspace import Workshop, workshop
from commands.decisions.recorder import EvaluationRecorder
from commands.errors import DoneWithGaps, counted
from commands.evaluating.evaluate import evaluate_all, owed_requests
from commands.runs.run import selected_prompts
from projections.tournament.progress import progress

app = typer.Typer(no_args_is_help=True)


@app.command()
def generate(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    mode: ModeOption = "headline",
    yes: YesOption = False,
    max_usd: MaxUsdOption = None,
    limit: LimitOption = None,
    allow_gaps: AllowGapsOption = False,
) -> None:
    """Generate the responses that are owed. Example: tourney apply generate --limit 10."""
    place = workshop(config, ledger)
    prompts = selected_prompts(place.opening.bank, place.settings, mode)
    terms = Terms(mode, agreed=yes, max_usd=max_usd, limit=limit)
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        done = generate_with_consent(recorder, place, terms, prompts, on_progress)
        responses = progress(recorder.state, prompts, recorder.state.panel[0]).responses
    say(f"{done.n_owed} responses were owed, {done.n_generated} generated, {done.n_failed} failed")
    n_failed = sum(row.failed for row in responses)
    if n_failed and not allow_gaps:
        raise DoneWithGaps(f"{n_failed} responses failed; see `tourney project progress`")


@app.command()
def judge(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    mode: ModeOption = "headline",
    judge: AskedOption = None,
    provider: ProviderOption = None,
    yes: YesOption = False,
    max_usd: MaxUsdOption = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Send what is owed, and come back later (exit 7).")
    ] = False,
    limit: LimitOption = None,
    allow_gaps: AllowGapsOption = False,
) -> None:
    """Put the open queries to the judge. Example: tourney apply judge --yes --max-usd 20."""
    place = workshop(config, ledger, provider=provider)
    prompts = selected_prompts(place.opening.bank, place.settings, mode)
    terms = Terms(mode, judge, agreed=yes, max_usd=max_usd, waits=not no_wait, limit=limit)
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        chosen = chosen_judge(recorder.state, place, terms)
        done = judge_with_consent(recorder, place, terms, prompts, on_progress)
        accounts = progress(recorder.state, prompts, chosen).accounts
    say(
        f"{done.n_open} queries were open, {done.n_verdicts} answered with a verdict,"
        f" {done.n_failed} without; {done.n_reconciled} pairs reconciled"
    )
    n_gaps = sum(account.n_failed for _, account in accounts)
    if (n_gaps or done.n_failed) and not allow_gaps:
        raise DoneWithGaps(
            f"{n_gaps} pairs have no outcome, {done.n_failed} of the queries asked now no verdict;"
            " see `tourney project progress`"
        )
    require_landed(recorder.state, chosen, prompts)


@app.command()
def evaluate(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    entrant: EntrantOption = None,
    evaluation: EvaluationOption = None,
    yes: YesOption = False,
    max_usd: MaxUsdOption = None,
    limit: LimitOption = None,
    allow_gaps: AllowGapsOption = False,
) -> None:
    """Evaluate the entrants on what is owed. Example: tourney apply evaluate --entrant base."""
    place = workshop(config, ledger)
    terms = Terms(agreed=yes, max_usd=max_usd, limit=limit)
    with put_to_work(place.settings) as inference_of:
        if inference_of is not None:
            planned = plan_evaluations(place, inference_of, entrant, evaluation)
            _evaluate(place, planned, terms, allow_gaps=allow_gaps)


def _evaluate(place: Workshop, planned: Planned, terms: Terms, *, allow_gaps: bool) -> None:
    for fault in planned.refused:
        say(fault)
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        evaluations = EvaluationRecorder(recorder.ledger, place.stream)
        for warning in mixed_scorings(evaluations.state, planned):
            say(warning)
        owed = owed_requests(evaluations.state, planned.evaluations, limit=terms.limit)
        settle_served(recorder, place, owed, agreed=terms.agreed, max_usd=terms.max_usd)
        done = evaluate_all(
            evaluations, planned.evaluations, on_progress=on_progress, limit=terms.limit
        )
        n_gaps = n_given_up(evaluations.state, planned)
    say(
        f"{done.n_owed} samples were owed, {done.n_observed} observed,"
        f" {done.n_unscorable} unscorable; see `tourney project metrics`"
    )
    if n_gaps and not allow_gaps:
        raise DoneWithGaps(
            f"{counted(n_gaps, 'sample')} could not be scored; see `tourney project metrics`"
        )
