"""Options that mean the same wherever they apply, each spelt in one way."""

from math import isfinite
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

from commands.cli.shared import completion
from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from commands.cli.tables.render import Format
from ledger.events.ratings import Mode
from ledger.events.registration import Provider
from projections.verdicts.policies import POLICY_NAMES

ConfigOption: TypeAlias = Annotated[
    Path, typer.Option("--config", "-c", help="The tournament's settings.")
]
LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        "-l",
        envvar="TOURNEY_LEDGER",
        help="The ledger file. Default: as the settings say, else tournament.db.",
    ),
]


class Paths(NamedTuple):
    """Which settings and which ledger a command works on."""

    config: ConfigOption = DEFAULT_CONFIG
    ledger: LedgerOption = None

    @property
    def of_ledger(self) -> Path:
        """The path of the ledger, which the settings may name."""
        return ledger_path(self.ledger, self.config)


TournamentOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tournament",
        autocompletion=completion.tournaments,
        help="Which tournament, if the ledger holds several.",
    ),
]
AsOfOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", help="Read the ledger up to this position or time (ISO 8601)."),
]
DiffOption: TypeAlias = Annotated[
    str | None, typer.Option("--diff", help="Show what changed since this position or time.")
]
JudgeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--judge",
        autocompletion=completion.judges,
        help="Use this judge's verdicts. Default: the first judge with outcomes.",
    ),
]
PolicyOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--policy",
        autocompletion=completion.policies,
        help=f"How verdicts become outcomes: {', '.join(POLICY_NAMES)}.",
    ),
]
ParserOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--parser",
        autocompletion=completion.parsers,
        help="Read the stored replies again with this parser, at no cost.",
    ),
]
DimensionOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--dimension", autocompletion=completion.dimensions, help="Only this dimension."),
]
ModeOption: TypeAlias = Annotated[
    Mode, typer.Option("--mode", help="headline: the whole bank; pilot: a stratified subset.")
]
FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="The format of the output.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
SkipBadOption: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows or lines with errors.")
]
EntrantOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--entrant", autocompletion=completion.entrants, help="Only this entrant."),
]
EvaluationOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--evaluation", autocompletion=completion.evaluations, help="Only this evaluation."
    ),
]
LimitOption: TypeAlias = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most this many, in order.")
]
AllowGapsOption: TypeAlias = Annotated[
    bool, typer.Option("--allow-gaps", help="Exit 0 even if responses or verdicts are missing.")
]
AskedJudgeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--judge",
        autocompletion=completion.judges,
        help="The judge to ask. Default: the judge of the mode.",
    ),
]
ProviderOption: TypeAlias = Annotated[
    Provider | None, typer.Option("--provider", help="Use this instead of [judge] provider.")
]
YesOption: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Agree to the cost in advance, within the cap.")
]


def _amount(usd: float | None) -> float | None:
    """Refuse NaN and infinity: as a cap, NaN would stop nothing."""
    if usd is not None and not isfinite(usd):
        raise typer.BadParameter(f"{usd} is not an amount of dollars.")
    return usd


MaxUsdOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-usd",
        min=0,
        callback=_amount,
        help="Dollar cap, including what this tournament has already spent.",
    ),
]
