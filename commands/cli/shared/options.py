"""Options that mean the same wherever they apply, each spelt in one way.

What --tournament, --as-of, --judge and --dimension name is found in `commands/reading/resolve.py`.
"""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from commands.cli.shared import completion
from commands.cli.shared.output import format_named
from commands.cli.tables.render import Format
from commands.settings.toml import ENGINE, EngineName, from_home
from ledger.events import ratings
from projections.battles.imported_sets import COLUMNS, PROMPT_COLUMNS, Unread
from projections.verdicts.parsers import PARSERS
from projections.verdicts.policies import POLICY_NAMES

Config: TypeAlias = Annotated[
    Path, typer.Option("--config", "-c", help="The tournament's settings.")
]
Ledger: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        "-l",
        envvar="TOURNEY_LEDGER",
        callback=lambda path: path and from_home(path),  # in a variable or after =, shells let ~ be
        help="The ledger file. Default: [tournament] ledger, else tournament.db.",
    ),
]

OutputFormat: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        parser=format_named,
        metavar=f"[{'|'.join(Format)}]",
        autocompletion=lambda: [*Format],
        help="The format of the output.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Tournament: TypeAlias = Annotated[
    str | None,
    typer.Option(
        autocompletion=completion.tournaments, help="Which tournament, if the ledger holds several."
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Read the ledger up to this position or time (ISO 8601; UTC if no zone is named)."
    ),
]
Judge: TypeAlias = Annotated[
    str | None,
    typer.Option(
        autocompletion=completion.judges,
        help="Use this judge's verdicts. Default: the first judge with outcomes.",
    ),
]
Dimension: TypeAlias = Annotated[
    str | None, typer.Option(autocompletion=completion.dimensions, help="Only this dimension.")
]
Policy: TypeAlias = Annotated[
    str,
    typer.Option(
        autocompletion=lambda: [*POLICY_NAMES],
        help=f"How verdicts become outcomes: {', '.join(POLICY_NAMES)}.",
    ),
]
Parser: TypeAlias = Annotated[
    str | None,
    typer.Option(
        autocompletion=lambda: sorted({name.partition("@")[0] for name in PARSERS}),
        help="Read the stored replies again with this parser, at no cost.",
    ),
]
Diff: TypeAlias = Annotated[
    str | None, typer.Option(help="Show what changed since this position or time.")
]
Mode: TypeAlias = Annotated[
    ratings.Mode, typer.Option(help="headline: the whole bank; pilot: a stratified subset.")
]
SkipBad: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows or lines with errors.")
]
Entrants: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--entrant", autocompletion=completion.entrants, help="Only this entrant. Repeatable."
    ),
]
Evaluations: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--evaluation",
        autocompletion=completion.evaluations,
        help="Only this evaluation. Repeatable.",
    ),
]
Limit: TypeAlias = Annotated[int | None, typer.Option(min=1, help="At most this many, in order.")]
AskingLimit: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, help="Stop after this many. 0: only record the settings."),
]
NoWait: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Receive ended batches, send open queries, and exit 7 if a batch is in flight.",
    ),
]
Repeat: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Ask so many queries with a verdict again instead, drawn at random, to see how often"
        " the verdict changes. Ratings leave repeats out.",
    ),
]
AllowGaps: TypeAlias = Annotated[
    bool, typer.Option("--allow-gaps", help="Exit 0 even if responses or verdicts are missing.")
]
AskedJudge: TypeAlias = Annotated[
    str | None,
    typer.Option(
        autocompletion=completion.judges, help="The judge to ask. Default: the judge of the mode."
    ),
]
Engine: TypeAlias = Annotated[
    EngineName,
    typer.Option(
        envvar=ENGINE,
        help="Where weights run. local: this machine; ray: all accelerators of a Ray cluster.",
    ),
]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Do not ask for consent to the cost. The cap still holds.")
]


def or_standard_input(file: Path) -> Path:
    """Return a file to read; `-` is standard input."""
    return Path("/dev/stdin") if file == Path("-") else file


def or_standard_output(file: Path | None) -> Path | None:
    """Return a file to write; `-` is standard output, as if none was named."""
    return None if file == Path("-") else file


def of_set(says: str, *names: str, metavar: str | None = None) -> Any:  # noqa: ANN401  # as typer's
    """Return an option that names an imported set of battles or ratings."""
    return typer.Option(*names, metavar=metavar, autocompletion=completion.imported_sets, help=says)


SetName: TypeAlias = Annotated[
    str | None, of_set("Use this imported set of battles instead of the tournament.")
]
Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="Only battles with this value, such as category=math; repeatable. Columns:"
        f" {', '.join(PROMPT_COLUMNS)}; with --name {', '.join(COLUMNS)}.",
    ),
]
UnreadRule: TypeAlias = Annotated[
    Unread | None,
    typer.Option(
        help="How replies without a verdict count: drop (default), drop-pair (both games of the"
        " prompt, as arena-hard v2.0) or tie (as JudgeArena's hard ratings)."
    ),
]
Ties: TypeAlias = Annotated[
    ratings.TieModel | None,
    typer.Option(help="half: half a win for each; davidson: a third outcome."),
]
Anchor: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ENTRANT[=RATING]",
        autocompletion=completion.entrants,
        help="Fix this entrant's rating. Default: fix the mean.",
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        callback=or_standard_output,
        help="The file to write. Default: standard output.",
    ),
]


def finite(number: float | None) -> float | None:
    """Refuse NaN and infinity: as a cap, NaN would stop nothing."""
    if number is not None and not isfinite(number):
        raise typer.BadParameter(f"{number} is not a finite number.")
    return number


MaxUsd: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0,
        callback=finite,
        help="Dollar cap, including what this tournament has already spent.",
    ),
]
