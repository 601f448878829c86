"""From options to the set of imported battles that is meant."""

from collections.abc import Sequence
from typing import NamedTuple

from commands.cli.asked import Asked
from commands.cli.place import head_at
from commands.errors import ConfigurationError
from ledger.events.imports import BattlesImported
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import fold


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
