"""The selection that shared options make, and how it is read from a ledger."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from commands.cli.shared.ledger import head_at, position_of, read_tournament
from commands.cli.tables.table import judged_by
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament, Perspective, judged_tournament
from ledger.events.imports import BattlesImported
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import fold
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule


class Selection(NamedTuple):
    """What the shared options select."""

    ledger: Path
    config: Path
    tournament: str | None
    as_of: str | None
    judge: str | None
    dimension: str | None
    rule: Rule


def note_of(rule: Rule) -> str:
    """Return the note on outcomes by another rule than the recorded one."""
    replies = "the recorded verdicts" if rule.parser is None else f"replies read by {rule.parser}"
    counted = "; each order is a game of its own" if rule.policy == CONCATENATE else ""
    return f"Outcomes by {rule.policy} from {replies}{counted}. They are not on record."


def notes_of(source: JudgedTournament) -> tuple[str, ...]:
    """Return the notes on who judged, and on how many pairs have which outcome."""
    return (judged_by(source.judges), *source.accounts)


def read_verdicts(selection: Selection) -> JudgedTournament:
    """Read the selected tournament.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: An option names something unknown, or contradicts another.
        NothingRecorded: There is no such tournament.
    """
    with Ledger.read_only(selection.ledger) as opened:
        state = read_tournament(opened, selection.tournament, selection.as_of, selection.config)
        until = position_of(opened, selection.as_of)
    perspective = Perspective(selection.judge, selection.dimension, selection.rule)
    return judged_tournament(state, selection.ledger, until, perspective)


def pinned(selection: Selection) -> Selection:
    """Return the selection as of a fixed position, so that several reads see the same events."""
    with Ledger.read_only(selection.ledger) as opened:
        return selection._replace(as_of=str(head_at(opened, selection.as_of).position))


def require_no_tournament(selection: Selection) -> None:
    """Refuse options that do not apply to imported battles.

    Raises:
        ConfigurationError: One of them is given.
    """
    chosen = (selection.tournament, selection.judge, selection.dimension)
    if any(chosen) or selection.rule != RECORDED:
        options = "--tournament, --judge, --dimension, --policy and --parser"
        raise ConfigurationError([f"{options} apply to a tournament's battles: leave out --name"])


class BattleSet(NamedTuple):
    """An imported set of battles, and the last position read."""

    events: Sequence[BattlesImported]
    as_of: int


def read_set(selection: Selection, name: str) -> BattleSet:
    """Read an imported set of battles.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(selection.ledger) as opened:
        as_of = head_at(opened, selection.as_of).position
        battles = fold(IMPORTED_BATTLES, opened.read(until=as_of, types={"BattlesImported"}))
    if name not in battles.names:
        known = ", ".join(battles.names) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    return BattleSet(battles.of([name]).events, as_of)
