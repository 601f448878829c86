"""`tourney gate`: whether a candidate is good enough beside a baseline, as an exit code."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Annotated, Final

import numpy as np
import typer

from commands.cli.shared import completion
from commands.cli.shared.reading import read_verdicts
from commands.cli.shared.selection import JUDGED, WRITTEN, Selection, selecting
from commands.cli.shared.views import notes_of, with_source
from commands.cli.tables.table import table_of
from commands.errors import ConfigurationError, counted
from commands.reading.resolve import unknown
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import CODES, Battles
from projections.ratings.bradley_terry.rate import rate
from projections.ratings.gate import MARGIN, GatePolicy, pass_or_stop
from projections.results.ratings import GateRow

_WORSE: Final = 3  # exit codes
_NOT_ENOUGH: Final = 6
_OPEN: Final = ("pending", "errored", "expired", "canceled")  # the next command asks these
_ERRORS: Final = (
    "Not worse: the 95 % interval lies above -margin. Worse: it lies below 0. Each is wrong in at"
    " most 2.5 % of looks; who looks again and again errs more often."
)


@selecting(*JUDGED, *WRITTEN)
def gate(
    ctx: typer.Context,
    candidate: Annotated[
        str,
        typer.Option(
            "--candidate", metavar="ID", autocompletion=completion.entrants, help="The new entrant."
        ),
    ],
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            metavar="ID",
            autocompletion=completion.entrants,
            help="The entrant that it is to replace.",
        ),
    ],
    margin: Annotated[
        float, typer.Option(min=0, help="Elo points that the candidate may be behind.")
    ] = MARGIN,
    better: Annotated[
        bool, typer.Option("--better", help="Let the candidate pass only if it is ahead.")
    ] = False,
) -> None:
    """Say whether a candidate is good enough beside a baseline.

    Reads the verdicts on record, by Bradley-Terry. Exit code 0: not worse, or better; 3: worse on
    some dimension; 6: not enough evidence.

    Example: tourney gate --candidate full_poe --baseline base_olmo
    """
    selection: Selection = ctx.obj
    source = read_verdicts(selection)
    for name in (candidate, baseline):
        if name not in source.roster:
            raise unknown("entrant", name, source.roster)
    if candidate == baseline:
        raise ConfigurationError(["--candidate and --baseline are the same entrant; name two"])
    policy: GatePolicy = "better" if better else "not-worse"
    judged = partial(pass_or_stop, pair=(candidate, baseline), margin=margin, policy=policy)
    battles = source.rated_battles("half")
    rows = [
        _held_back(judged(name, each, rate(each, BradleyTerryParameters())), source.columns[name])
        for name, each in battles.items()
    ]
    apart = [
        name for name, each in battles.items() if not each.between({candidate, baseline}).any()
    ]
    table = table_of(
        GateRow,
        rows,
        "tourney/gate@1",
        f"{candidate} beside {baseline}",
        notes=(*_notes(rows, apart), _ERRORS, *notes_of(source)),
        facts={"policy": policy},
        without={"why"},
    )
    selection.writer.write(with_source(table, source))
    verdicts = {row.verdict for row in rows}
    if code := _WORSE if "worse" in verdicts else _NOT_ENOUGH if "not enough" in verdicts else 0:
        raise typer.Exit(code)


def _held_back(row: GateRow, planned: Battles) -> GateRow:
    """Give no verdict while pairs of the two are open: on a part of the prompts it is early."""
    is_open = np.isin(planned.status, [CODES[status] for status in _OPEN])
    n_open = int(np.count_nonzero(planned.between({row.candidate, row.baseline}) & is_open))
    if not n_open:
        return row
    pairs = counted(n_open, "pair of the two is", "pairs of the two are")
    why = f"{pairs} not judged yet: `tourney run` goes on"
    return row._replace(verdict="not enough", n_more_prompts=None, why=why)


def _notes(rows: Iterable[GateRow], apart: Collection[str]) -> Iterator[str]:
    for row in rows:
        if row.dimension in apart:
            yield f"{row.dimension}: the two never met, and are compared through others"
        if row.why is not None:
            yield f"{row.dimension}: {row.why}"
        elif row.n_more_prompts is not None:
            more = counted(row.n_more_prompts, "more prompt")
            yield f"{row.dimension}: if they are equal, about {more} would show it"
