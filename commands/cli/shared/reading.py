"""Read what the shared options select, a tournament, imported battles or votes, and show it.

A table is shown with what it rests on; --diff shows how it changed.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from commands.cli.shared.output import say
from commands.cli.shared.selection import Selected, Selection
from commands.cli.tables.table import Table, difference_table, judged_by
from commands.errors import ConfigurationError, as_option, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import (
    JudgedTournament,
    OutcomeSource,
    Perspective,
    judged_tournament,
)
from commands.reading.resolve import position_at
from commands.settings.toml import variable
from ledger.events.imports import BattlesImported
from ledger.events.ratings import EloParameters
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet
from projections.tournament.compared import Account
from projections.verdicts.policies import CONCATENATE, MAJORITY, RECORDED, Rule

Source = TypeVar("Source", JudgedTournament, SelectedSet, JudgedTournament | SelectedSet)
_NAME: Final = re.compile(r"[\w.-]+")


def read_verdicts(selection: Selection) -> JudgedTournament:
    """Read the selected tournament."""
    perspective = Perspective(selection.judge, selection.dimension, selection.rule, selection.kept)
    with Ledger.read_only(selection.path) as opened:
        state, until = selection.state_in(opened), selection.position_in(opened)
    return judged_tournament(state, selection.path, until, perspective)


def read_outcomes(selection: Selection) -> JudgedTournament | SelectedSet:
    """Read the chosen set of battles, or without one the tournament as `read_verdicts` does."""
    if selection.is_of_set:
        return chosen_set(selection)
    return read_verdicts(selection)


def chosen_set(selection: Selection) -> SelectedSet:
    """Read the chosen battles of the imported set that --name names."""
    kept = selection.kept
    selection.require_no_tournament()
    with Ledger.read_only(selection.path) as opened:
        as_of = selection.head_in(opened).position
        name, unread = selection.name or "", selection.unread or "drop"
        return imported_set(opened, name, as_of, kept, unread=unread)


def read_set(selection: Selection, name: str) -> SelectedSet:
    """Read a whole imported set of battles beside what is selected."""
    with Ledger.read_only(selection.path) as opened:
        return imported_set(opened, name, selection.head_in(opened).position)


def pinned(selection: Selection) -> Selection:
    """Return the selection as of a fixed position, so that several reads see the same events."""
    with Ledger.read_only(selection.path) as opened:
        return replace(selection, as_of=str(selection.head_in(opened).position))


def human_set(selection: Selection, name: str, option: str) -> SelectedSet:
    """Return an imported set with human votes, at least one.

    Whoever names a set as human votes says what those of unknown source are.
    """
    selected_set = read_set(selection, name)
    if not selected_set.battles.is_human.any():
        raise ConfigurationError([f"{option} {name!r} has no human votes: its source is llm-judge"])
    return selected_set


def by_people(battles: BattlesOfSet) -> Battles:
    """Return the human votes among imported battles."""
    return battles.take(battles.is_human).rated(soft=False)


def votes_on_record(
    source: JudgedTournament, votes: SelectedSet, option: str
) -> tuple[Mapping[Dimension, Sequence[BattlesImported]], int]:
    """Return the votes of people on responses that compete, at least one, and how many do not."""
    current, n_outdated = current_votes(source.state, votes.name, source.votes_of(votes.events))
    on = [dimension for dimension, events in current.items() if events]
    if not set(source.settlements) <= set(on):
        if on:
            named = " or ".join(f"--dimension {dimension}" for dimension in on)
            why = f"has votes on {' and '.join(on)}: add {named}"
        else:
            why = "has no vote on responses that compete now; `tourney annotate` collects some"
        raise ConfigurationError([f"{option} {votes.name!r} {why}"])
    return current, n_outdated


def outdated_note(name: str, n_votes: int) -> tuple[str, ...]:
    """Say that votes were left out since an entrant or a prompt was changed; nothing if none."""
    why = "the responses, or the entrants' names, changed since"
    return (f"{counted(n_votes, 'vote')} of {name!r} left out: {why}.",) if n_votes else ()


def set_name(name: str) -> str:
    """Return the name of a set, if it has only letters, digits, dots, dashes and underscores."""
    if _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        [f"--name {name!r}: use only letters, digits, dots, dashes and underscores"]
    )


_TOO_MANY: Final = 0.2  # of the judged pairs are inconsistent
_RATED_BY: Final = {
    "elo": ("elo", EloParameters.__struct_fields__, {"k", "ties"}),
    "bradley_terry": (
        "bt",
        ("ties", "prior_sd", "anchor", "anchor_rating"),
        {"ties", "anchor"},
    ),
}
"""The command that rates by each section, the section's keys, and those that are options."""


def show(
    ctx: Selected,
    read: Callable[[Selection], Source],
    view: Callable[[Source], Table],
    diff: str | None = None,
) -> None:
    """Print a view of what a command's selection reads, or what changed in it since --diff."""

    def table_of(selection: Selection) -> Table:
        source = read(selection)
        return with_source(view(source), source)

    show_table(ctx, table_of, diff)


def show_outcomes(
    ctx: Selected,
    view: Callable[[OutcomeSource], Table],
    diff: str | None = None,
    read: Callable[[Selection], JudgedTournament | SelectedSet] = read_outcomes,
) -> None:
    """Print a view of outcomes as `show` does, with who judged, and how many there are."""

    def table_of(source: JudgedTournament | SelectedSet) -> Table:
        table = view(source)
        notes, facts = (*notes_of(source), *table.notes), {"judge": source.judge_id, **table.facts}
        return replace(table, notes=notes, facts=facts)

    show(ctx, read, table_of, diff)


def show_table(
    ctx: Selected, table_of: Callable[[Selection], Table], diff: str | None = None
) -> None:
    """Print the table of a command's selection, or what changed in it since --diff."""
    selection = ctx.selection
    for note in ignored_variables(os.environ):
        say(note)
    table = table_of(selection)
    if diff is not None:
        with Ledger.read_only(selection.path) as opened:
            since = position_at(opened, diff, option="--diff")
        table = _difference(table_of(replace(selection, as_of=str(since))), table)
    selection.write(table)


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
