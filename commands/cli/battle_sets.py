"""From options to a format of battles, and to the set of battles that is meant."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from commands.battle_readers.formats import FORMATS, Format
from commands.cli.asked import Asked
from commands.cli.place import head_at
from commands.errors import ConfigurationError
from ledger.events.battles import BattlesImported
from ledger.store import Ledger
from projections.fold import fold
from projections.imported_battles import IMPORTED_BATTLES

_NAME: Final = re.compile(r"[\w.-]+")


def format_of(name: str) -> Format:
    """Return the format that --from names.

    Raises:
        ConfigurationError: There is no such format.
    """
    if name in FORMATS:
        return FORMATS[name]
    close = get_close_matches(name, FORMATS, n=2, cutoff=0.5)
    remedy = (
        f"did you mean {' or '.join(close)}?" if close else f"it is one of {', '.join(FORMATS)}"
    )
    raise ConfigurationError([f"--from {name!r} is no format of battles; {remedy}"])


def set_name(name: str) -> str:
    """Return the name of a set of battles, if it can be one.

    Raises:
        ConfigurationError: It cannot.
    """
    if _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        [f"--name {name!r}: letters, digits, dots, dashes and underscores only"]
    )


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
