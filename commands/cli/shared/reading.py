"""Read what the shared options select: a tournament, an imported set of battles, human votes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from commands.cli.shared.ledger import head_at, position_of, read_tournament
from commands.cli.shared.selection import Selection
from commands.errors import ConfigurationError, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import JudgedTournament, Perspective, judged_tournament
from ledger.events.imports import BattlesImported
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet, battles_of_set

_NAME: Final = re.compile(r"[\w.-]+")


def read_verdicts(selection: Selection) -> JudgedTournament:
    """Read the selected tournament."""
    perspective = Perspective(selection.judge, selection.dimension, selection.rule, selection.kept)
    with Ledger.read_only(selection.path) as opened:
        state = read_tournament(opened, selection.tournament, selection.as_of, selection.config)
        until = position_of(opened, selection.as_of)
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
        as_of = head_at(opened, selection.as_of).position
        name, unread = selection.name or "", selection.unread or "drop"
        return imported_set(opened, name, as_of, kept, unread=unread)


def read_set(selection: Selection, name: str) -> SelectedSet:
    """Read a whole imported set of battles beside what is selected."""
    with Ledger.read_only(selection.path) as opened:
        return imported_set(opened, name, head_at(opened, selection.as_of).position)


def pinned(selection: Selection) -> Selection:
    """Return the selection as of a fixed position, so that several reads see the same events."""
    with Ledger.read_only(selection.path) as opened:
        return replace(selection, as_of=str(head_at(opened, selection.as_of).position))


def human_set(selection: Selection, name: str, option: str) -> SelectedSet:
    """Return an imported set with human votes, at least one.

    Whoever names a set as human votes says what those of unknown source are.
    """
    found = read_set(selection, name)
    if not found.battles.is_human.any():
        raise ConfigurationError([f"{option} {name!r} has no human votes: its source is llm-judge"])
    return found


def by_people(battles: BattlesOfSet) -> Battles:
    """Return the human votes among imported battles."""
    return battles.take(battles.is_human).rated(soft=False)


class VotesOnRecord(NamedTuple):
    """Human votes on a tournament's responses, by dimension, and a note on those left out."""

    on: Mapping[Dimension, Sequence[BattlesImported]]
    notes: tuple[str, ...]

    def battles(self, dimension: Dimension) -> Battles:
        """Return the votes on a dimension as battles."""
        return by_people(battles_of_set(self.on[dimension]))


def votes_on_record(source: JudgedTournament, votes: SelectedSet, option: str) -> VotesOnRecord:
    """Return the human votes of a set on responses that compete in a tournament, at least one."""
    current = current_votes(source.state, votes.name, source.votes_of(votes.events))
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


def set_name(name: str) -> str:
    """Return the name of a set, if it has only letters, digits, dots, dashes and underscores."""
    if _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        [f"--name {name!r}: use only letters, digits, dots, dashes and underscores"]
    )
