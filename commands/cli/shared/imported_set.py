"""An imported set of battles, as the shared options select it."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.shared import options
from commands.cli.shared.ledger import head_at
from commands.cli.shared.reading import Selection, read_verdicts
from commands.errors import ConfigurationError, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.runs.judged_tournament import JudgedTournament
from ledger.events.imports import BattlesImported
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet, battles_of_set
from projections.battles.selection import COLUMNS, Unread, Where
from projections.verdicts.policies import RECORDED

_NAME: Final = re.compile(r"[\w.-]+")


class SetOptions(NamedTuple):
    """The imported set of battles that is read instead of a tournament."""

    name: Annotated[
        str | None, options.of_set("Use this imported set of battles instead of the tournament.")
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Only battles with this value, such as category=math; repeatable. Columns:"
            f" {', '.join(COLUMNS)}.",
        ),
    ] = None
    unread: Annotated[
        Unread | None,
        typer.Option(
            help="How replies without a verdict count: drop (default), drop-pair (both games of the"
            " prompt, as arena-hard v2.0) or tie (as JudgeArena's hard ratings)."
        ),
    ] = None

    @property
    def kept(self) -> Where:
        """By column the values that are kept.

        Raises:
            ConfigurationError: There is no set to select from, or no column in an option.
        """
        if self.unread is not None and self.name is None:
            raise ConfigurationError(["--unread is for battles of an imported set: add --name"])
        if self.where and self.name is None:
            raise ConfigurationError(["--where selects battles of an imported set: add --name"])
        kept: dict[str, list[str]] = {}
        for each in self.where or ():
            column, is_given, value = each.partition("=")
            if not is_given:
                raise ConfigurationError([f"--where {each!r}: write it as category=math"])
            kept.setdefault(column, []).append(value)
        return kept


def read_outcomes(
    selection: Selection, chosen: SetOptions, *, settles_only: bool = False
) -> JudgedTournament | SelectedSet:
    """Read the chosen set of battles, or without one the selected tournament.

    Of a tournament no more is read, if wished, than what settles by recorded outcomes.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: An option names something unknown, or contradicts another.
        NothingRecorded: There is no such tournament.
    """
    where = chosen.kept
    if chosen.name is None:
        return read_verdicts(selection, settles_only=settles_only)
    require_no_tournament(selection)
    return read_set(selection, chosen.name, where, chosen.unread)


def read_set(
    selection: Selection, name: str, where: Where | None = None, unread: Unread | None = None
) -> SelectedSet:
    """Read an imported set of battles, or some of them.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set, or no such battle in it.
    """
    with Ledger.read_only(selection.path) as opened:
        as_of = head_at(opened, selection.as_of).position
        return imported_set(opened, name, as_of, where, unread=unread or "drop")


def votes_of(selection: Selection, name: str, option: str) -> Battles:
    """Return the human votes of an imported set, at least one.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set, or it has no human votes.
    """
    return _by_people(human_set(selection, name, option).battles)


def _by_people(battles: BattlesOfSet) -> Battles:
    return battles.take(battles.is_human).rated(soft=False)


class VotesOnRecord(NamedTuple):
    """Human votes on a tournament's responses, by dimension, and a note on those left out."""

    on: Mapping[Dimension, Sequence[BattlesImported]]
    notes: tuple[str, ...]

    def battles(self, dimension: Dimension) -> Battles:
        """Return the votes on a dimension as battles."""
        return _by_people(battles_of_set(self.on[dimension]))


def votes_on_record(source: JudgedTournament, votes: SelectedSet, option: str) -> VotesOnRecord:
    """Return the human votes of a set on responses that compete in a tournament, at least one.

    Raises:
        ConfigurationError: On one of the tournament's dimensions there is none.
    """
    current = current_votes(source.state, votes.name, votes.events)
    on = [dimension for dimension, events in current.on.items() if events]
    if not set(source.settlements) <= set(on):
        if on:
            named = " or ".join(f"--dimension {each}" for each in on)
            why = f"has votes on {' and '.join(on)}: add {named}"
        else:
            why = "has no vote on responses that compete now; `tourney annotate` collects some"
        raise ConfigurationError([f"{option} {votes.name!r} {why}"])
    return VotesOnRecord(current.on, outdated_note(votes.name, current.n_outdated))


def outdated_note(name: str, n_votes: int) -> tuple[str, ...]:
    """Say that votes were left out since an entrant or a prompt was changed; nothing if none."""
    why = "the responses, or the entrants' names, changed since"
    return (f"{counted(n_votes, 'vote')} of {name!r} left out: {why}.",) if n_votes else ()


def human_set(selection: Selection, name: str, option: str) -> SelectedSet:
    """Return an imported set with human votes, at least one.

    Whoever names a set as human votes says what those of unknown source are.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set, or it has no human votes.
    """
    found = read_set(selection, name)
    if not found.battles.is_human.any():
        raise ConfigurationError([f"{option} {name!r} has no human votes: its source is llm-judge"])
    return found


def require_no_tournament(selection: Selection) -> None:
    """Refuse options that do not apply to imported battles.

    Raises:
        ConfigurationError: One of them is given.
    """
    chosen = (selection.tournament, selection.judge, selection.dimension)
    if any(chosen) or selection.rule != RECORDED:
        options = "--tournament, --judge, --dimension, --policy and --parser"
        instead = "a set's judge is chosen by --where judge=NAME" if selection.judge else ""
        why = f"{options} apply to a tournament's battles: leave out --name"
        raise ConfigurationError(["; ".join(filter(None, (why, instead)))])


def set_name(name: str) -> str:
    """Return the name of a set, if it has only letters, digits, dots, dashes and underscores."""
    if _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        [f"--name {name!r}: use only letters, digits, dots, dashes and underscores"]
    )
