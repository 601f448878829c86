"""Options of several commands that `selection` does not have, each spelt in one way."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from commands.cli.shared import completion
from commands.cli.shared.output import format_named
from commands.cli.tables.render import Format
from commands.settings.toml import ENGINE, EngineName
from ledger.events import ratings

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
Dimension: TypeAlias = Annotated[
    str | None, typer.Option(autocompletion=completion.dimensions, help="Only this dimension.")
]
Diff: TypeAlias = Annotated[
    str | None, typer.Option(help="Show what changed since this position or time.")
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
Repeat: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Ask so many queries with a verdict again instead, drawn at random, to see how often"
        " the verdict changes. Ratings leave repeats out.",
    ),
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


def or_standard_input(file: Path) -> Path:
    """Return a file to read; `-` is standard input."""
    return Path("/dev/stdin") if file == Path("-") else file


def or_standard_output(file: Path | None) -> Path | None:
    """Return a file to write; `-` is standard output, as if none was named."""
    return None if file == Path("-") else file


def of_set(says: str, *names: str, metavar: str | None = None) -> Any:  # noqa: ANN401  # as typer's
    """Return an option that names an imported set of battles or ratings."""
    return typer.Option(*names, metavar=metavar, autocompletion=completion.imported_sets, help=says)


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
