"""`tourney battle`: one battle on one screen."""

from functools import partial
from typing import Annotated

import typer

from commands.cli.shared import completion
from commands.cli.shared.reading import read_verdicts
from commands.cli.shared.selection import JUDGED, WRITTEN, Selection, selecting
from commands.cli.shared.views import with_source
from commands.cli.tables.battle import battle_screen, battle_table
from commands.reading.judged_tournament import battle_named
from projections.battles.details import battle_details


@selecting(*JUDGED, *WRITTEN)
def battle(
    ctx: typer.Context,
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
) -> None:
    """Show one battle: both responses and the judge's replies.

    It tells the verdict in each order, or why there is none. On a terminal differing words are
    underlined.

    Example: tourney battle recall_001 base_olmo full_poe
    """
    selection: Selection = ctx.obj
    source = read_verdicts(selection)
    chosen = battle_named(source.state, prompt, entrants or ())
    details = battle_details(source.state, chosen, source.judge)
    table = with_source(battle_table(details), source)
    selection.writer.write_lines_or(table, partial(battle_screen, details))
