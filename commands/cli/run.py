"""`tourney run` and `demo`: a whole tournament. `doctor`: is all ready?"""

import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from commands.backends.wiring import backends_on, open_dataset, reach
from commands.cli.project.elo import elo_table
from commands.cli.shared.output import say
from commands.cli.shared.selection import (
    OF_LEDGER,
    SPENDING,
    WRITTEN,
    Selected,
    Selection,
    selecting,
)
from commands.cli.shared.terminal import console
from commands.cli.shared.workspace import see_status, spending_of, workspace
from commands.cli.tables.table import table_of
from commands.errors import DoneWithGaps, MissingExtra, counted
from commands.judging.plan import JudgingOptions
from commands.judging.unreadable import tell_unreadable, tell_without_gold
from commands.runs.doctor import Finding, findings, missing_models
from commands.runs.run import RunSummary, run_tournament
from commands.settings.starting import SETTINGS, lay_out_demo
from ledger.errors import TourneyError
from ledger.store import utc_now
from projections.tournament.compared import Account
from projections.tournament.waves import not_asked


@selecting("mode", *SPENDING, "no_wait", "allow_gaps", "engine", *OF_LEDGER, *WRITTEN)
def run(ctx: Selected) -> None:
    """Run a tournament: generate, judge, rate, write artifacts.

    Example: tourney run --mode pilot
    """
    _run(ctx.selection)


def _run(selection: Selection) -> None:
    place = workspace(selection.config, selection.ledger)
    how = JudgingOptions(
        selection.mode, waits=not selection.no_wait, spending=spending_of(selection)
    )
    backends = backends_on(selection.engine, place.settings, place.folder, say)
    with place.recorder(say) as recorder, console() as talk:
        now = utc_now()
        summary = run_tournament(recorder, place, how, backends, talk, now=now, reach=reach)
    results = summary.run.results
    gaps = _gaps(standings.account for standings in results.standings.values())
    _tell(summary, gaps)
    prompts = results.publication.terms.prompts
    tell_unreadable(results.tournament, prompts, results.judge, say)
    tell_without_gold(results.tournament, prompts, say)
    heard = {reply.judge for reply in results.tournament.replies}
    for juror in place.settings.jury:
        if juror.id not in heard:
            say(f"{juror.id} was not asked: `tourney apply judge --judge {juror.id}` asks it, too")
    at_one_k = [replace(standings, sweep=()) for standings in results.standings.values()]
    table = elo_table(
        at_one_k,
        place.settings.elo.parameters,
        results.judge,
        left_out=not_asked(results.tournament, results.judge),
    )
    selection.write(table)
    if gaps and not selection.allow_gaps:
        raise DoneWithGaps(f"{_without_outcome(gaps)}; {see_status(place)}")


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder to create the demo in.")
    ] = Path("tourney-demo"),
    weights: Annotated[
        bool, typer.Option("--weights", help="Generate the answers here, by tiny shipped weights.")
    ] = False,
) -> None:
    """Run a whole tournament, offline. Recorded answers are judged, rated and reported.

    Example: tourney demo
    """
    config = folder / SETTINGS
    if weights and not config.exists() and (missing := missing_models()):
        raise MissingExtra(missing[0], "models")
    lay_out_demo(folder, weights=weights)
    _run(Selection(config=config))
    at = f"-c {shlex.quote(str(config))}"
    say("Next, at no cost:")
    say(f"  tourney project elo {at} --k 32      rate with another K")
    say(f"  tourney project winrates {at}        who beats whom")
    say(f"  tourney log recall_001 {at}         the events of one prompt")
    newest = max((folder / "runs").glob("*/report.html"))
    say(f"Or open the report in a browser: {newest}")


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


@selecting(*OF_LEDGER, *WRITTEN)
def doctor(ctx: Selected) -> None:
    """Check that everything is ready for a run.

    Checks this machine, the ledger, the keys, servers and prices of the settings, and whether the
    prompts have the gold answers that rubrics need. Sends nothing that costs money.

    Example: tourney doctor
    """
    selection = ctx.selection
    settings = selection.config if selection.config.exists() else None
    today, version = datetime.now(UTC).date(), sqlite3.sqlite_version_info
    found = [
        *findings(
            settings,
            selection.path,
            version,
            today=today,
            reach=reach,
            open_dataset=open_dataset,
        )
    ]
    selection.write(table_of(Finding, found, "tourney/doctor@1", "This machine"))
    bad = [finding.what for finding in found if finding.grade == "bad"]
    if bad:
        raise TourneyError(f"not ready: {', '.join(bad)}; see the findings above")
