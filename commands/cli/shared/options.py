"""Options that mean the same wherever they apply."""

from math import isfinite
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
        help="The ledger's file; without it the one that the settings name.",
    ),
]
TournamentOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--tournament", help="Which tournament of a ledger that holds several."),
]
AsOfOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", help="Read up to this position, or up to this time (ISO 8601)."),
]
DiffOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--diff", help="Show what changed since this position, or since this time."),
]
JudgeOption: TypeAlias = Annotated[
    str | None, typer.Option("--judge", help="Whose verdicts; without it the first that judged.")
]
PolicyOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--policy",
        help=f"What makes outcomes of verdicts: {', '.join(POLICY_NAMES)}.",
    ),
]
ParserOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--parser", help="Read the stored replies again by this parser, at no cost."),
]
DimensionOption: TypeAlias = Annotated[
    str | None, typer.Option("--dimension", help="Only this dimension.")
]
ModeOption: TypeAlias = Annotated[
    Mode, typer.Option("--mode", help="headline: the whole bank; pilot: its stratified subset.")
]
FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", help="How to write it.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
SkipBadOption: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows or lines that cannot be used.")
]
EntrantOption: TypeAlias = Annotated[
    str | None, typer.Option("--entrant", help="Only this entrant.")
]
EvaluationOption: TypeAlias = Annotated[
    str | None, typer.Option("--evaluation", help="Only this evaluation.")
]
LimitOption: TypeAlias = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most this many, in order.")
]
AllowGapsOption: TypeAlias = Annotated[
    bool, typer.Option("--allow-gaps", help="Exit 0 even if responses or verdicts are missing.")
]
AskedOption: TypeAlias = Annotated[
    str | None, typer.Option("--judge", help="Who is asked; without it the mode's judge.")
]
ProviderOption: TypeAlias = Annotated[
    Provider | None, typer.Option("--provider", help="In place of [judge] provider.")
]
YesOption: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Agree beforehand to what it costs, within the cap.")
]


def _amount(usd: float | None) -> float | None:
    """Refuse what is no amount: nothing is more than NaN, so such a cap would hold nothing back."""
    if usd is not None and not isfinite(usd):
        raise typer.BadParameter(f"{usd} is no amount of dollars.")
    return usd


MaxUsdOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-usd",
        min=0,
        callback=_amount,
        help="Spend no more, with what the ledger says was spent.",
    ),
]

DEFAULT_CONFIG = Path("tournament.toml")
