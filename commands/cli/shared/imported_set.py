"""An imported set of battles, as the shared options select it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from commands.cli.shared.ledger import head_at
from commands.cli.shared.reading import Selection, read_verdicts
from commands.errors import ConfigurationError, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import JudgedTournament
from ledger.events.imports import BattlesImported
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet, battles_of_set
from projections.battles.selection import Unread, Where
from projections.verdicts.policies import RECORDED

_NAME: Final = re.compile(r"[\w.-]+")


def read_outcomes(
    selection: Selection, *, settles_only: bool = False
) -> JudgedTournament | SelectedSet:
    """Read the chosen set of battles, or without one the selected tournament.

    Of a tournament no more is read, if wished, than what settles by recorded outcomes.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: An option names something unknown, or contradicts another.
        NothingRecorded: There is no such tournament.
    """
    name, where = selection.imported.name, selection.imported.kept
    if name is None:
        return read_verdicts(selection, settles_only=settles_only)
    require_no_tournament(selection)
    return read_set(selection, name, where, selection.imported.unread)


def read_settled(selection: Selection) -> JudgedTournament | SelectedSet:
    """Read as `read_outcomes`, for what asks for no verdict: of recorded outcomes, none is read."""
    return read_outcomes(selection, settles_only=True)


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
            named = " or ".join(f"--dimension {dimension}" for dimension in on)
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
