"""`tourney apply`: the verbs that touch models."""

import typer

from commands.cli.options import (
    DEFAULT_CONFIG,
    AllowGapsOption,
    ConfigOption,
    LedgerOption,
    LimitOption,
    ModeOption,
)
from commands.cli.progress_bar import progress_on_stderr
from commands.cli.streams import say
from commands.cli.workshop import workshop
from commands.errors import DoneWithGaps
from commands.generate import generate_owed
from commands.judge import judge_open
from commands.run import selected_prompts
from commands.wiring import make_generator, make_judge
from projections.progress import progress

app = typer.Typer(no_args_is_help=True)


@app.command()
def generate(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    mode: ModeOption = "headline",
    limit: LimitOption = None,
    allow_gaps: AllowGapsOption = False,
) -> None:
    """Generate the responses that are owed. Example: tourney apply generate --limit 10."""
    place = workshop(config, ledger)
    prompts = selected_prompts(place.opening.bank, place.settings, mode)
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        done = generate_owed(
            recorder,
            lambda: make_generator(place.settings),
            prompts,
            on_progress=on_progress,
            limit=limit,
        )
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
    limit: LimitOption = None,
    allow_gaps: AllowGapsOption = False,
) -> None:
    """Put the open queries to the judge. Example: tourney apply judge --mode pilot."""
    place = workshop(config, ledger)
    prompts = selected_prompts(place.opening.bank, place.settings, mode)
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        done = judge_open(
            recorder,
            recorder.state.panel[0],
            lambda: make_judge(place.settings),
            prompts,
            retries=place.settings.judge.retries,
            on_progress=on_progress,
            limit=limit,
        )
        accounts = progress(recorder.state, prompts, recorder.state.panel[0]).accounts
    say(f"{done.n_open} queries were open, {done.n_verdicts} answered with a verdict,")
    say(f"{done.n_failed} without; {done.n_reconciled} pairs reconciled")
    n_gaps = sum(account.n_failed for _, account in accounts)
    if n_gaps and not allow_gaps:
        raise DoneWithGaps(f"{n_gaps} pairs have no outcome; see `tourney project progress`")
