"""The selection that shared options make, and how it is read from a ledger."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from commands.cli.shared.ledger import (
    DEFAULT_CONFIG,
    head_at,
    ledger_path,
    position_of,
    read_tournament,
)
from commands.cli.shared.options import (
    AsOfOption,
    ConfigOption,
    DiffOption,
    DimensionOption,
    JudgeOption,
    LedgerOption,
    ParserOption,
    PolicyOption,
    TournamentOption,
)
from commands.cli.tables.table import judged_by
from commands.errors import ConfigurationError
from commands.runs.choices import rule_of
from commands.runs.judged_tournament import JudgedTournament, Perspective, judged_tournament
from ledger.events.imports import BattlesImported
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import fold
from projections.verdicts.policies import CONCATENATE, DEFAULT_POLICY, RECORDED, Rule


class Selection(NamedTuple):
    """What the shared options select."""

    config: ConfigOption = DEFAULT_CONFIG
    ledger: LedgerOption = None
    tournament: TournamentOption = None
    as_of: AsOfOption = None
    judge: JudgeOption = None
    dimension: DimensionOption = None
    policy: PolicyOption = DEFAULT_POLICY
    parser: ParserOption = None
    diff: DiffOption = None

    @property
    def path(self) -> Path:
        """The path of the ledger."""
        return ledger_path(self.ledger, self.config)

    @property
    def rule(self) -> Rule:
        """How replies become outcomes."""
        return rule_of(self.policy, self.parser)


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
    perspective = Perspective(selection.judge, selection.dimension, selection.rule)
    with Ledger.read_only(selection.path) as opened:
        state = read_tournament(opened, selection.tournament, selection.as_of, selection.config)
        until = position_of(opened, selection.as_of)
    return judged_tournament(state, selection.path, until, perspective)


def pinned(selection: Selection) -> Selection:
    """Return the selection as of a fixed position, so that several reads see the same events."""
    with Ledger.read_only(selection.path) as opened:
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
    with Ledger.read_only(selection.path) as opened:
        as_of = head_at(opened, selection.as_of).position
        battles = fold(IMPORTED_BATTLES, opened.read(until=as_of, types={"BattlesImported"}))
    if name not in battles.names:
        known = ", ".join(battles.names) or "none, see `tourney import battles --help`"
        raise ConfigurationError([f"no battles were imported as {name!r}; there are: {known}"])
    return BattleSet(battles.of([name]).events, as_of)
