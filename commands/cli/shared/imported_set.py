"""An imported set of battles, as the shared options select it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from commands.cli.shared.ledger import head_at
from commands.cli.shared.reading import Selection
from commands.errors import ConfigurationError
from ledger.events.imports import BattlesImported
from ledger.store import Ledger
from projections.battles.columns import Battles
from projections.battles.imported import BattleTable, table_of
from projections.battles.imported_sets import IMPORTED_BATTLES
from projections.fold import fold
from projections.verdicts.policies import RECORDED


@dataclass(frozen=True)
class SelectedSet:
    """An imported set of battles, and the last position read."""

    name: str
    events: Sequence[BattlesImported]
    as_of: int

    @cached_property
    def battles(self) -> BattleTable:
        """The battles as columns."""
        return table_of(self.events)

    @property
    def judges(self) -> list[str]:
        """The judges, in alphabetical order."""
        return sorted(
            {judge for event in self.events for judge in event.judges.values if judge is not None}
        )


def read_set(selection: Selection, name: str) -> SelectedSet:
    """Read an imported set of battles.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(selection.path) as opened:
        as_of = head_at(opened, selection.as_of).position
        battles = fold(IMPORTED_BATTLES, opened.read(until=as_of, types={"BattlesImported"}))
    if name not in battles.names:
        known = ", ".join(battles.names) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    return SelectedSet(name, battles.of([name]).events, as_of)


def votes_of(selection: Selection, name: str, option: str) -> Battles:
    """Return the human votes of an imported set, at least one.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set, or it has no human votes.
    """
    table = read_set(selection, name).battles
    if not table.is_human.any():
        raise ConfigurationError([f"{option} {name!r} has no human votes: its source is llm-judge"])
    return table.where(table.is_human).battles(soft=False)


def require_no_tournament(selection: Selection) -> None:
    """Refuse options that do not apply to imported battles.

    Raises:
        ConfigurationError: One of them is given.
    """
    chosen = (selection.tournament, selection.judge, selection.dimension)
    if any(chosen) or selection.rule != RECORDED:
        options = "--tournament, --judge, --dimension, --policy and --parser"
        raise ConfigurationError([f"{options} apply to a tournament's battles: leave out --name"])
