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
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        done = generate_owed(
            recorder,
            lambda: make_generator(place.settings),
            selected_prompts(recorder.state, place.settings, mode),
            on_progress=on_progress,
            limit=limit,
        )
    say(f"{done.n_owed} responses were owed, {done.n_generated} generated, {done.n_failed} failed")
    if done.n_failed and not allow_gaps:
        raise DoneWithGaps(f"{done.n_failed} responses failed; see `tourney project progress`")


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
    with place.recorder() as recorder, progress_on_stderr() as on_progress:
        recorder.record(place.opening)
        done = judge_open(
            recorder,
            recorder.state.panel[0],
            lambda: make_judge(place.settings),
            selected_prompts(recorder.state, place.settings, mode),
            retries=place.settings.judge.retries,
            on_progress=on_progress,
            limit=limit,
        )
    say(f"{done.n_open} queries were open, {done.n_verdicts} answered with a verdict,")
    say(f"{done.n_failed} without; {done.n_reconciled} pairs reconciled")
    if done.n_failed and not allow_gaps:
        raise DoneWithGaps(
            f"{done.n_failed} queries have no verdict; see `tourney project progress`"
        )
