"""What a reading is asked for: which ledger, as of when, for which judge, by which rule."""

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


def note_of(rule: Rule) -> str:
    """Say by what rule outcomes were made that are not those on record."""
    read = "as recorded" if rule.parser is None else f"read again by {rule.parser}"
    counted = ", each order a game of its own" if rule.policy == CONCATENATE else ""
    return f"Outcomes by {rule.policy}{counted}, of replies {read}; nothing of this is on record."


class Asked(NamedTuple):
    """What the shared options say."""

    ledger: Path
    config: Path
    tournament: str | None
    as_of: str | None
    judge: str | None
    dimension: str | None
    rule: Rule


def notes_of(source: JudgedTournament) -> tuple[str, ...]:
    """Say who judged, and what became of every pairing."""
    return (judged_by(source.judges), *source.accounts)


def read_verdicts(asked: Asked) -> JudgedTournament:
    """Read what the options name out of a ledger.

    Raises:
        LedgerError: It cannot be read.
        ConfigurationError: An option names nothing, or does not go with another.
        NothingRecorded: There is no such tournament.
    """
    with Ledger.read_only(asked.ledger) as opened:
        state = read_tournament(opened, asked.tournament, asked.as_of, asked.config)
        until = position_of(opened, asked.as_of)
    perspective = Perspective(asked.judge, asked.dimension, asked.rule)
    return judged_tournament(state, asked.ledger, until, perspective)


def pinned(asked: Asked) -> Asked:
    """Return what is asked for as of a position, so that all of it is read as of the same."""
    with Ledger.read_only(asked.ledger) as opened:
        return asked._replace(as_of=str(head_at(opened, asked.as_of).position))


def require_no_tournament(asked: Asked) -> None:
    """Refuse options that say nothing of imported battles.

    Raises:
        ConfigurationError: There are such.
    """
    if any((asked.tournament, asked.judge, asked.dimension)) or asked.rule != RECORDED:
        chosen_by = "--tournament, --judge, --dimension, --policy and --parser"
        raise ConfigurationError([f"{chosen_by} are of a tournament's battles: leave out --name"])


class BattleSet(NamedTuple):
    """Imported battles that go by one name, and the last position that was read."""

    events: Sequence[BattlesImported]
    as_of: int


def read_set(asked: Asked, name: str) -> BattleSet:
    """Read a set of imported battles.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(asked.ledger) as opened:
        as_of = head_at(opened, asked.as_of).position
        battles = fold(IMPORTED_BATTLES, opened.read(until=as_of, types={"BattlesImported"}))
    if name not in battles.names:
        known = ", ".join(battles.names) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    return BattleSet(battles.of([name]).events, as_of)
