"""Print a table of what the shared options select, or how it changed."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from commands.cli.shared.output import Writer, say
from commands.cli.shared.reading import Selection, note_of
from commands.cli.tables.table import Table, difference_table
from commands.errors import ConfigurationError, as_option
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.resolve import position_at
from commands.settings.toml import variable
from ledger.events.ratings import EloParameters
from ledger.store import Ledger
from projections.verdicts.policies import MAJORITY, RECORDED

Source = TypeVar("Source", JudgedTournament, SelectedSet, JudgedTournament | SelectedSet)
_RATED_BY: Final = {
    "elo": ("elo", EloParameters.__struct_fields__, {"k", "k_sweep", "ties", "bootstraps"}),
    "bradley_terry": (
        "bt",
        ("ties", "prior_sd", "anchor", "anchor_rating", "level"),
        {"ties", "anchor"},
    ),
}
"""The command that rates by each section, the section's keys, and those that are options."""


def view_of(
    read: Callable[[Selection], Source], view: Callable[[Source], Table]
) -> Callable[[Selection], Table]:
    """Return a function that reads a selection, and returns a view of what it read."""

    def table_of(selection: Selection) -> Table:
        source = read(selection)
        return with_source(view(source), source)

    return table_of


def show(
    table_of: Callable[[Selection], Table],
    selection: Selection,
    writer: Writer,
    diff: str | None = None,
) -> None:
    """Print the table of a selection, or with --diff what changed in it.

    Args:
        table_of: Reads a selection, and returns its table.
        selection: What the options select.
        writer: How the table is written.
        diff: The earlier position or time to compare with; None: there is none.
    """
    for note in ignored_variables(os.environ):
        say(note)
    table = table_of(selection)
    if diff is not None:
        with Ledger.read_only(selection.path) as opened:
            since = position_at(opened, diff, option="--diff")
        table = _difference(table_of(selection._replace(as_of=str(since))), table)
    writer.write(table)


def ignored_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on each variable of the rating settings: reading goes by what is recorded."""
    for section, (command, keys, options) in _RATED_BY.items():
        prefix = variable((section, ""))
        for name in sorted(name for name in environ if name.startswith(prefix)):
            key = name.removeprefix(prefix).lower()
            remedy = f"[{section}] has no key {key!r}"
            if key in options:
                option = f"{as_option(key)} {environ[name].strip('[]')}"
                remedy = f"`tourney project {command} {option}` does"
            elif key in keys:
                remedy = "it counts once `tourney run` or `tourney apply` recorded it"
            yield f"{name} changes nothing here: {remedy}"


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
        facts |= {"judge": None, "judges": [judge.judge_id for judge in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
