"""Print a table of what the shared options select, or how it changed, with what it rests on."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

import typer

from commands.cli.shared.output import say
from commands.cli.shared.selection import Selection
from commands.cli.tables.table import Table, difference_table, judged_by
from commands.errors import ConfigurationError, as_option
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.resolve import position_at
from commands.settings.toml import variable
from ledger.events.ratings import EloParameters
from ledger.store import Ledger
from projections.tournament.compared import Account
from projections.verdicts.policies import CONCATENATE, MAJORITY, RECORDED, Rule

Source = TypeVar("Source", JudgedTournament, SelectedSet, JudgedTournament | SelectedSet)
_TOO_MANY: Final = 0.2  # of the judged pairs are inconsistent
_RATED_BY: Final = {
    "elo": ("elo", EloParameters.__struct_fields__, {"k", "k_sweep", "ties"}),
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
    ctx: typer.Context, table_of: Callable[[Selection], Table], diff: str | None = None
) -> None:
    """Print the table of a command's selection, or what changed in it since --diff."""
    selection: Selection = ctx.obj
    for note in ignored_variables(os.environ):
        say(note)
    table = table_of(selection)
    if diff is not None:
        with Ledger.read_only(selection.path) as opened:
            since = position_at(opened, diff, option="--diff")
        table = _difference(table_of(replace(selection, as_of=str(since))), table)
    selection.writer.write(table)


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
    facts, rule = source.facts | table.facts, source.rule
    notes = (*source.selected_by, *table.notes)
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, _note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [judge.judge_id for judge in source.state.panel]}
    return replace(table, facts=facts, notes=notes)


def _note_of(rule: Rule) -> str:
    replies = "the recorded verdicts" if rule.parser is None else f"replies read by {rule.parser}"
    counted = "; each order is a separate game" if rule.policy == CONCATENATE else ""
    return f"Outcomes by {rule.policy} from {replies}{counted}. They are not recorded."


def notes_of(source: OutcomeSource) -> tuple[str, ...]:
    """Return the notes on who judged, and on how many pairs or battles have which outcome."""
    judged = [judged_by(source.judges)] if source.judges else []
    return (*judged, *source.accounts, *_doubts(source))


def _doubts(source: OutcomeSource) -> Iterator[str]:
    """Yield how inconsistent pairs count, and warn where the verdicts hardly rank anybody."""
    for dimension, battles in source.columns.items():
        account = battles.account
        if account.inconsistent:
            warning = "WARNING: " if account.inconsistent_share > _TOO_MANY else ""
            yield f"{warning}{dimension}: {_disagreement(account, len(source.judges))}"
        if account.tie == account.decided + account.tie + account.inconsistent > 0:
            tied = f"all {account.tie} {account.counted} with an outcome are ties"
            yield f"WARNING: {dimension}: {tied}, so there is no ranking."


def _disagreement(account: Account, n_judges: int) -> str:
    """Say how many pairs are inconsistent, and how they count."""
    if n_judges > 1:
        share = f"{account.inconsistent_share:.0%}"
        return f"on {share} of the judged pairs no outcome has a majority; they do not count."
    counted = "ratings and shares of wins count each verdict by itself"
    return f"{account.disagreement()}; {counted}. `tourney project bias` shows more."
