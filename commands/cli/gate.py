"""`tourney gate`: whether a candidate is good enough beside a baseline, as an exit code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer

from commands.backends.wiring import backends_on, reach
from commands.cli.shared import completion
from commands.cli.shared.output import say
from commands.cli.shared.reading import read_verdicts, with_source
from commands.cli.shared.selection import JUDGED, SPENDING, WRITTEN, Selected, Selection, selecting
from commands.cli.shared.terminal import console
from commands.cli.shared.workspace import spending_of, workspace
from commands.cli.tables.table import Table, judged_by, table_of
from commands.errors import ConfigurationError, counted
from commands.judging.plan import JudgingOptions
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.resolve import require_known
from commands.runs.gate import run_gate
from ledger.events.values import MAX_POINTS
from projections.battles.columns import battles_of
from projections.ratings.gate import MARGIN, GatePolicy, GateQuestion, gate_looks
from projections.results.ratings import GateRow

_WORSE: Final = 3  # exit codes
_NOT_ENOUGH: Final = 6
_LEAST_MARGIN: Final = 0.01  # Elo points; the forecast grows with the square of its inverse
_VERDICTS: Final[Mapping[GatePolicy, str]] = {
    "not-worse": "Not worse: the interval lies above -margin. Worse: it lies below 0.",
    "better": "Better: the interval lies above 0. Worse: it lies below 0.",
}
_ERRORS: Final = (
    " The verdicts are looked at after each few prompts, and the first look that decides stands;"
    " its interval is so wide that either error is made at some look in at most 2.5 % of cases."
)


@selecting(*SPENDING, *JUDGED, *WRITTEN)
def gate(
    ctx: Selected,
    candidate: Annotated[
        str,
        typer.Option(metavar="ID", autocompletion=completion.entrants, help="The new entrant."),
    ],
    baseline: Annotated[
        str,
        typer.Option(
            metavar="ID",
            autocompletion=completion.entrants,
            help="The entrant that it is to replace.",
        ),
    ],
    margin: Annotated[
        float,
        typer.Option(help="Elo points that the candidate may be behind. 0: it must be ahead."),
    ] = MARGIN,
    runs: Annotated[
        bool,
        typer.Option(
            "--run", help="Ask what is missing about the two, until the verdict is known."
        ),
    ] = False,
) -> None:
    """Say whether a candidate is good enough beside a baseline.

    Reads the verdicts on record, by Bradley-Terry; with --run it asks for more, a few prompts at a
    time. Exit code 0: not worse, or better; 3: worse on some dimension; 6: not enough evidence.

    Example: tourney gate --candidate full_poe --baseline base_olmo
    """
    selection = ctx.selection
    question = GateQuestion(candidate, baseline, margin)
    if margin and not _LEAST_MARGIN <= margin <= MAX_POINTS:  # NaN, too
        raise ConfigurationError([f"--margin {margin:g}: write 0, or points such as {MARGIN:g}"])
    if candidate == baseline:
        raise ConfigurationError(["--candidate and --baseline are the same entrant; name two"])
    if runs:
        _run(selection, question)
    elif selection.yes or selection.max_usd is not None:
        raise ConfigurationError(["--yes and --max-usd are for what --run asks: add --run"])
    source = read_verdicts(selection)
    require_known("entrant", question.pair, source.roster)
    rows = [look.row for look in gate_looks(source.state, source.judge, question)]
    selection.write(with_source(_table(rows, question, source), source))
    verdicts = {row.verdict for row in rows}
    if code := _WORSE if "worse" in verdicts else _NOT_ENOUGH if "not enough" in verdicts else 0:
        raise typer.Exit(code)


def _table(rows: Sequence[GateRow], question: GateQuestion, source: JudgedTournament) -> Table:
    return table_of(
        GateRow,
        rows,
        "tourney/gate@1",
        f"{question.candidate} beside {question.baseline}",
        notes=(*_notes(rows), _VERDICTS[question.policy] + _ERRORS, *_accounts(source, question)),
        facts={"policy": question.policy},
        without={"why"},
    )


def _accounts(source: JudgedTournament, question: GateQuestion) -> Iterator[str]:
    """Yield who judged, and how many pairs of the two, or else of all, have which outcome."""
    yield judged_by(source.judges)
    for dimension, settlements in source.settlements.items():
        pair = {*question.pair}
        own = [settlement for settlement in settlements if settlement.pairing.entrants == pair]
        yield f"{dimension}: {battles_of(own or settlements).account.sentence()}"


def _run(selection: Selection, question: GateQuestion) -> None:
    """Ask what is missing."""
    if selection.as_of is not None or selection.tournament is not None:
        why = "--run asks by the settings of today: leave out --as-of and --tournament"
        raise ConfigurationError([why])
    place = workspace(selection.config, selection.ledger)
    roster = [entrant.entrant_id for entrant in place.opening.roster]
    require_known("entrant", question.pair, roster)
    how = JudgingOptions(judge=selection.judge, spending=spending_of(selection))
    backends = backends_on("local", place.settings, place.folder, say)
    with place.recorder(say) as recorder, console() as talk:
        run_gate(
            recorder, place, question, how, backends, talk, reach=reach, only=selection.dimension
        )


def _notes(rows: Iterable[GateRow]) -> Iterator[str]:
    for row in rows:
        if row.why is not None:
            yield f"{row.dimension}: {row.why}"
        if row.n_more_prompts is not None:
            more = counted(row.n_more_prompts, "more prompt")
            yield f"{row.dimension}: if they are equal, about {more} would show it"
