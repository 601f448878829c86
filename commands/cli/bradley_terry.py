"""`tourney project bt`: Bradley-Terry ratings of a tournament, of others' battles, or of both."""

from typing import Annotated

import typer

from commands.cli import bt_views as views
from commands.cli.asked import Asked, read_verdicts
from commands.cli.bt_options import (
    AnchorOption,
    IntervalOption,
    LevelOption,
    PriorOption,
    ResamplesOption,
    SeedOption,
    TiesOption,
    UnitOption,
    bt_parameters,
    features_of,
    recorded_settings,
    weights_of,
)
from commands.cli.reading import answering, introduced
from commands.errors import ConfigurationError
from commands.tables.table import Table


@answering
def bt(
    asked: Asked,
    *,
    ties: TiesOption = None,
    anchor: AnchorOption = None,
    prior_sd: PriorOption = None,
    interval: IntervalOption = None,
    unit: UnitOption = None,
    level: LevelOption = None,
    resamples: ResamplesOption = None,
    seed: SeedOption = None,
    overall_by: Annotated[
        str | None,
        typer.Option(
            "--overall", metavar="WEIGHTS", help="Over dimensions, as factuality=2,utility=1."
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            "--control", help="As if all wrote alike: style, or some of length,headers,lists,bold."
        ),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option("--with", metavar="NAME", help="Together with a set of imported battles."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="A set of imported battles, and no tournament's."),
    ] = None,
) -> Table:
    """Rate by Bradley-Terry, with intervals. Example: tourney project bt --unit prompts."""
    given = {"--overall": overall_by, "--control": control, "--with": among, "--name": name}
    if sum(each is not None for each in given.values()) > 1:
        raise ConfigurationError([f"choose one of {', '.join(given)}"])
    options = {
        "ties": ties,
        "prior_sd": prior_sd,
        "interval": interval,
        "unit": unit,
        "level": level,
        "resamples": resamples,
        "seed": seed,
    }
    if name is not None:
        return views.of_imported(asked, name, bt_parameters({}, options, anchor))
    source = read_verdicts(asked)
    parameters = bt_parameters(recorded_settings(source.state), options, anchor)
    if overall_by is not None:
        table = views.overall(source, weights_of(overall_by, source.settlements), parameters)
    elif control is not None:
        table = views.controlled(source, features_of(control), parameters)
    elif among is not None:
        table = views.among_others(source, asked, among, parameters)
    else:
        table = views.by_dimension(source, parameters)
    return introduced(table, source)
