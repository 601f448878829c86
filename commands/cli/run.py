"""`tourney run` and `demo`: a whole tournament. `init`: a new one. `doctor`: is all ready?"""

import shlex
import sqlite3
import webbrowser
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from commands.backends.wiring import backends_on, open_parquet, reach
from commands.cli.plan import generate
from commands.cli.shared import options
from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from commands.cli.shared.output import Writer, say
from commands.cli.shared.terminal import console, has_browser
from commands.cli.shared.workspace import workspace
from commands.cli.tables.elo import elo_table
from commands.cli.tables.render import Format
from commands.cli.tables.table import table_of
from commands.errors import ConfigurationError, DoneWithGaps, MissingExtra, counted
from commands.importing.prompts import read_answers_table, read_prompts
from commands.judging.session import JudgingOptions
from commands.judging.unreadable import tell_unreadable, tell_without_gold
from commands.runs.doctor import Finding, findings_by, missing_models
from commands.runs.run import RunSummary, run_tournament
from commands.settings.starting.demo import lay_out_demo
from commands.settings.starting.new_tournament import (
    FIRST_PROMPTS,
    SETTINGS,
    NewTournament,
    lay_out,
)
from commands.spending.offer import SpendingOptions
from ledger.errors import TourneyError
from ledger.store import utc_now
from projections.tournament.compared import Account


def run(
    mode: options.Mode = "headline",
    yes: options.Yes = False,
    max_usd: options.MaxUsd = None,
    no_wait: options.NoWait = False,
    allow_gaps: options.AllowGaps = False,
    engine: options.Engine = "local",
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Run a tournament: generate, judge, rate, write artifacts.

    Example: tourney run --mode pilot
    """
    writer = Writer(output_format, as_json)
    place = workspace(config, ledger)
    spending = SpendingOptions(agreed=yes, max_usd=max_usd)
    how = JudgingOptions(mode, waits=not no_wait, spending=spending)
    backends = backends_on(engine, place.settings, place.folder, say)
    with place.recorder(say) as recorder, console() as talk:
        now = utc_now()
        summary = run_tournament(recorder, place, how, backends, talk, now=now, reach=reach)
    results = summary.run.results
    gaps = _gaps(standings.account for standings in results.standings.values())
    _tell(summary, gaps)
    prompts = results.publication.terms.prompts
    tell_unreadable(results.tournament, prompts, results.judge, say)
    tell_without_gold(results.tournament, prompts, say)
    at_one_k = [replace(standings, sweep=()) for standings in results.standings.values()]
    table = elo_table(at_one_k, place.settings.elo.parameters, results.judge)
    writer.write(table)
    if gaps and not allow_gaps:
        raise DoneWithGaps(f"{_without_outcome(gaps)}; see `tourney project progress`")


_FIELDS = {"text": "the prompts", "gold_answer": "gold answers", "prompt_id": "ids"}
_SPELLING = "MAKER/MODEL as openai/gpt-5.6-luna, MODEL@URL for a server, or a folder of weights"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder to write the files to.")
    ] = Path(),
    from_csv: Annotated[
        Path | None,
        typer.Option("--from-csv", metavar="FILE", help="Take the prompts of a CSV file."),
    ] = None,
    from_answers: Annotated[
        Path | None,
        typer.Option(
            "--from-answers",
            metavar="FILE",
            help="Compare the answers of a table: prompts, and a column for each system.",
        ),
    ] = None,
    entrant: Annotated[
        list[str] | None,
        typer.Option("--entrant", metavar="MODEL", help=f"An entrant: {_SPELLING}. Repeatable."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", metavar="MODEL", help=f"The judge: {_SPELLING}, or a model of Anthropic."
        ),
    ] = None,
) -> None:
    """Write the files of a new tournament.

    These are settings, prompts, a rubric, and the judge's instructions. Other files are kept.

    Example: tourney init mine --from-csv prompts.csv --judge claude-sonnet-5-5
    """
    if from_answers is not None and from_csv is not None:
        raise ConfigurationError(["--from-csv and --from-answers exclude each other; use one"])
    table = None if from_csv is None else read_prompts(options.or_standard_input(from_csv))
    recorded: Mapping[str, Mapping[str, str]] = {}
    prompts: Sequence[Mapping[str, object]]
    if from_answers is not None:
        answers = read_answers_table(from_answers, open_parquet)
        recorded, prompts = answers.entrants, answers.prompts
        for field, column in answers.columns.items():
            say(f"{column!r} is the column of {_FIELDS.get(field, field)}")
        say(f"{counted(len(recorded), 'entrant')}: {', '.join(recorded)}")
        say(f"if one of them is no system, remove its table from {folder / SETTINGS}")
    else:
        prompts = FIRST_PROMPTS if table is None else table.prompts
    names = lay_out(folder, NewTournament(prompts, entrant or (), judge, recorded, from_answers))
    say(f"written to {folder}: {', '.join(names)}")
    if table is not None and table.unused:
        say(f"unused columns of {from_csv}: {', '.join(table.unused)}")
    n_gold = sum("gold_answer" in prompt for prompt in prompts)
    if 0 < n_gold < len(prompts):
        say(
            f"Only {n_gold} of {len(prompts)} prompts have a gold answer, so the rubric does not"
            " use them. Add the others, or set needs_gold = true in the rubric to judge those"
            f" {n_gold} only."
        )
    if not entrant and not recorded:
        say(f"the entrants are examples: put your models into {folder / SETTINGS}")
    if entrant or not recorded:
        generate(config=folder / SETTINGS)
    say("Next:")
    if folder != Path():
        say(f"  cd {shlex.quote(str(folder))}")
    say("  tourney doctor         check servers, models and keys")
    say("  tourney plan judge     show what the judge will be asked, and what it costs")
    say("  tourney run            generate, judge and rate")
    say("  tourney view           show ratings and battles in the browser, at no cost")


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder to create the demo in.")
    ] = Path("tourney-demo"),
    weights: Annotated[
        bool, typer.Option("--weights", help="Generate the answers here, by tiny shipped weights.")
    ] = False,
    shows: Annotated[
        bool,
        typer.Option("--open/--no-open", help="Open the report in the browser, at a desktop."),
    ] = True,
) -> None:
    """Run a whole tournament, offline. Recorded answers are judged, rated and reported.

    Example: tourney demo
    """
    config = folder / SETTINGS
    if weights and not config.exists() and (missing := missing_models()):
        raise MissingExtra(missing[0], "models")
    lay_out_demo(folder, weights=weights)
    run(config=config)
    at = f"-c {shlex.quote(str(config))}"
    say("Next, at no cost:")
    say(f"  tourney project elo {at} --k 32      rate with another K")
    say(f"  tourney project winrates {at}        who beats whom")
    say(f"  tourney show recall_001 {at}         the events of one prompt")
    if shows and has_browser():
        newest = max((folder / "runs").glob("*/report.html"))
        webbrowser.open(newest.resolve().as_uri())


def _gaps(accounts: Iterable[Account]) -> Counter[str]:
    """Count the pairs without an outcome by reason."""
    gaps: Counter[str] = Counter()
    for account in accounts:
        gaps.update({**dict(account.failed), "pending": account.pending})
    return +gaps


def _without_outcome(gaps: Counter[str]) -> str:
    return f"{counted(gaps.total(), 'pair has', 'pairs have')} no outcome"


def _tell(summary: RunSummary, gaps: Counter[str]) -> None:
    generated, judged, published = summary
    if generated.n_missing or judged.n_open:
        say(f"{generated.n_generated} responses generated, {judged.n_verdicts} verdicts received")
    elif gaps:
        why = " + ".join(f"{n_pairs} {reason}" for reason, n_pairs in gaps.items())
        say(f"nothing remains to be done, but {_without_outcome(gaps)}: {why}")
    else:
        say("nothing remains to be done: every response and verdict is on record")
    state = "published in" if published.is_new else "unchanged since"
    say(f"{state} {published.folder}; to read: {published.folder / 'report.html'}")


def doctor(
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Check that everything is ready for a run.

    Checks this machine, the ledger, the keys, servers and prices of the settings, and whether the
    prompts have the gold answers that rubrics need. Sends nothing that costs money.

    Example: tourney doctor
    """
    writer = Writer(output_format, as_json)
    settings, path = config if config.exists() else None, ledger_path(ledger, config)
    today, version = datetime.now(UTC).date(), sqlite3.sqlite_version_info
    findings = [*findings_by(settings, path, version, today=today, reach=reach)]
    writer.write(table_of(Finding, findings, "tourney/doctor@1", "This machine"))
    bad = [finding.what for finding in findings if finding.grade == "bad"]
    if bad:
        raise TourneyError(f"not ready: {', '.join(bad)}; see the findings above")
