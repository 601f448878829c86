"""An imported set of battles, as the shared options select it."""

from typing import Annotated, NamedTuple

from commands.cli.shared import options
from commands.cli.shared.ledger import head_at
from commands.cli.shared.reading import Selection, read_verdicts
from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet, imported_set
from commands.runs.judged_tournament import OutcomeSource
from ledger.store import Ledger
from projections.battles.columns import Battles
from projections.verdicts.policies import RECORDED


class SetOptions(NamedTuple):
    """The imported set of battles that is read instead of a tournament."""

    name: Annotated[
        str | None, options.of_set("Use this imported set of battles instead of the tournament.")
    ] = None


def read_outcomes(selection: Selection, chosen: SetOptions) -> OutcomeSource:
    """Read the chosen set of battles, or without one the selected tournament.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: An option names something unknown, or contradicts another.
        NothingRecorded: There is no such tournament.
    """
    if chosen.name is None:
        return read_verdicts(selection)
    require_no_tournament(selection)
    return read_set(selection, chosen.name)


def read_set(selection: Selection, name: str) -> SelectedSet:
    """Read an imported set of battles.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(selection.path) as opened:
        return imported_set(opened, name, head_at(opened, selection.as_of).position)


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
