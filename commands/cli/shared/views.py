"""Build the reading commands: shared options, the tournament they select, a table printed."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial, wraps
from inspect import Parameter
from types import MappingProxyType
from typing import Concatenate, Final, TypeAlias

from commands.cli.shared.command import Command, command_with, parameters_of
from commands.cli.shared.imported_set import SetOptions, read_outcomes
from commands.cli.shared.output import Writer, say
from commands.cli.shared.reading import Selection, note_of, read_verdicts
from commands.cli.tables.table import Table, difference_table
from commands.errors import ConfigurationError, as_option
from commands.importing.imported_set import SelectedSet
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.resolve import position_at
from commands.settings.toml import variable
from ledger.events.ratings import EloParameters
from ledger.store import Ledger
from projections.verdicts.policies import MAJORITY, RECORDED

View: TypeAlias = Callable[Concatenate[JudgedTournament, ...], Table]
BattlesView: TypeAlias = Callable[Concatenate[JudgedTournament | SelectedSet, ...], Table]
TableOf: TypeAlias = Callable[Concatenate[Selection, ...], Table]
_RATED_BY: Final = {
    "elo": ("elo", EloParameters.__struct_fields__, {"k", "k_sweep", "ties", "bootstraps"}),
    "bradley_terry": (
        "bt",
        ("ties", "prior_sd", "anchor", "anchor_rating", "level"),
        {"ties", "anchor"},
    ),
}
"""The command that rates by each section, the section's keys, and those that are options."""
_OF_OUTCOMES: Final = frozenset({"policy", "parser", "diff"})
_OF_SETS: Final = MappingProxyType({"chosen": SetOptions})


def tournament_view(view: View) -> Command:
    """Turn a view of a tournament into a command: its own options, then the shared ones."""
    return table_command(_read_first(view), without=_OF_OUTCOMES)


def outcomes_view(view: View) -> Command:
    """Turn a view of outcomes into a command with --policy and --parser."""
    return table_command(_read_first(view), without={"diff"})


def battles_view(view: BattlesView) -> Command:
    """Turn a view of outcomes, or of an imported set's battles, into a command with --name."""
    return table_command(_read_either(view, read_outcomes), without={"diff"}, more=_OF_SETS)


def ratings_view(view: BattlesView) -> Command:
    """Turn a view of outcomes, or of imported battles, into a command with --name and --diff.

    The view asks for no verdict: where outcomes are on record, none is read.
    """
    read = partial(read_outcomes, settles_only=True)
    return table_command(_read_either(view, read), more=_OF_SETS)


def table_command(
    table_of: TableOf,
    without: Collection[str] = (),
    more: Mapping[str, type] = MappingProxyType({}),
) -> Command:
    """Turn a function that reads on its own into a command with all shared options.

    It prints the table, or with --diff what changed in it.

    Args:
        table_of: Reads a selection, with options of its own.
        without: Shared options that it does not have.
        more: Further groups of options that it takes, by parameter.
    """

    @wraps(table_of)
    def show(selection: Selection, writer: Writer, **own: object) -> None:
        for note in ignored_variables(os.environ):
            say(note)
        table = table_of(selection, **own)
        if selection.diff is not None:
            with Ledger.read_only(selection.path) as opened:
                since = position_at(opened, selection.diff, option="--diff")
            table = _difference(table_of(selection._replace(as_of=str(since)), **own), table)
        writer.write(table)

    groups = {**more, "selection": Selection, "writer": Writer}
    shared = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=groups[name]) for name in groups]
    return command_with(show, [*parameters_of(table_of)[1:], *shared], without)


def ignored_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on each variable of the rating settings: reading goes by what is recorded."""
    for section, (command, keys, options) in _RATED_BY.items():
        prefix = variable((section, ""))
        for name in sorted(each for each in environ if each.startswith(prefix)):
            key = name.removeprefix(prefix).lower()
            remedy = f"[{section}] has no key {key!r}"
            if key in options:
                option = f"{as_option(key)} {environ[name].strip('[]')}"
                remedy = f"`tourney project {command} {option}` does"
            elif key in keys:
                remedy = "it counts once `tourney run` or `tourney apply` recorded it"
            yield f"{name} changes nothing here: {remedy}"


def table_command_without_rule(table_of: TableOf) -> Command:
    """Turn a function that reads on its own into a command without --policy, --parser, --diff."""
    return table_command(table_of, without=_OF_OUTCOMES)


def reading_command_without_rule(act: Command) -> Command:
    """Turn a function that reads and prints on its own into such a command."""
    return command_with(act, parameters_of(act), _OF_OUTCOMES)


def _read_first(view: View) -> TableOf:
    """Return a function that reads the selected tournament and returns a view of it."""

    @wraps(view)
    def table_of(selection: Selection, /, **own: object) -> Table:
        source = read_verdicts(selection)
        return with_source(view(source, **own), source)

    return table_of


def _read_either(
    view: BattlesView, read: Callable[[Selection, SetOptions], JudgedTournament | SelectedSet]
) -> TableOf:
    """Return a function that reads the chosen set or tournament, and returns a view of it."""

    @wraps(view)
    def table_of(selection: Selection, /, chosen: SetOptions, **own: object) -> Table:
        source = read(selection, chosen)
        return with_source(view(source, **own), source)

    return table_of


def _difference(then: Table, now: Table) -> Table:
    """Compare the tables of two positions, which must be by the same judge."""
    before, after = then.facts.get("judge"), now.facts.get("judge")
    if before != after:
        raise ConfigurationError(
            [f"--diff: the judge was {before!r} then and is {after!r} now; choose one with --judge"]
        )
    return difference_table(then, now)


def with_source(table: Table, source: JudgedTournament | SelectedSet) -> Table:
    """Add to a table what it is of, and the rule unless it is the recorded one."""
    if isinstance(source, SelectedSet):
        notes = (source.judged, *source.selected_by, *table.notes)
        return replace(table, facts=table.facts | source.facts, notes=notes)
    facts, notes, rule = source.facts | table.facts, table.notes, source.rule
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [each.judge_id for each in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
