"""`tourney project calibration`: whether entrants are as often right as they say they are."""

from typing import Annotated, Literal

import typer

from commands.cli.asked import Reading
from commands.cli.reading import reading_verdicts
from commands.errors import ConfigurationError
from commands.tables.calibration import calibration_table
from commands.tables.table import Table
from projections.reliability.calibration import against_gold, against_verdicts
from projections.verdicts.policies import RECORDED


@reading_verdicts
def calibration(
    source: Reading,
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            "--against",
            help="gold: whether the gold answer is in a response; judged: its share of wins.",
        ),
    ] = "gold",
) -> Table:
    """Compare p_correct with being right. Example: tourney project calibration --against judged."""
    if against == "judged":
        found = against_verdicts(source.state, source.settlements)
        return calibration_table(found, source.judge, accounts=source.notes)
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser are of verdicts: add --against judged"]
        )
    return calibration_table(against_gold(source.state))
