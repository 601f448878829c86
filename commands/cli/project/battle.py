"""`tourney battle`: one battle on one screen."""

from typing import Annotated

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.ledger import DEFAULT_CONFIG
from commands.cli.shared.output import Writer
from commands.cli.shared.reading import Selection, read_verdicts
from commands.cli.shared.views import with_source
from commands.cli.tables.battle import battle_screen, battle_table
from commands.cli.tables.render import Format
from commands.reading.judged_tournament import battle_named
from projections.battles.details import battle_details


def battle(
    prompt: Annotated[
        str,
        typer.Argument(
            metavar="PROMPT|ID",
            autocompletion=completion.prompts,
            help="A prompt, or the start of an id that `tourney project matches` lists.",
        ),
    ],
    entrants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[A B]",
            autocompletion=completion.entrants,
            help="The two entrants; not needed with an ID, or where there are only two.",
        ),
    ] = None,
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
    judge: options.Judge = None,
    dimension: options.Dimension = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Show one battle: both responses and the judge's replies.

    It tells the verdict in each order, or why there is none. On a terminal differing words are
    underlined.

    Example: tourney battle recall_001 base_olmo full_poe
    """
    selection = Selection(config, ledger, tournament, as_of, judge, dimension)
    source = read_verdicts(selection)
    chosen = battle_named(source.state, prompt, entrants or ())
    details = battle_details(source.state, chosen, source.judge)
    table = with_source(battle_table(details), source)
    writer = Writer(output_format, as_json)
    writer.write_lines_or(table, lambda console, width: battle_screen(details, console, width))
