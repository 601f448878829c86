"""The selection that shared options make, and how it is read from a ledger."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from commands.cli.shared.ledger import (
    DEFAULT_CONFIG,
    head_at,
    ledger_path,
    position_of,
    read_tournament,
)
from commands.cli.tables.table import judged_by
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import (
    JudgedTournament,
    OutcomeSource,
    Perspective,
    judged_tournament,
)
from commands.reading.resolve import rule_of
from ledger.store import Ledger
from projections.battles.selection import Unread, Where
from projections.tournament.compared import Account
from projections.verdicts import policies


class SetSelection(NamedTuple):
    """The imported set of battles that is read instead of a tournament; no name: none."""

    name: str | None = None
    where: Sequence[str] | None = None
    unread: Unread | None = None

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
        for condition in self.where or ():
            column, is_given, value = condition.partition("=")
            if not is_given:
                raise ConfigurationError([f"--where {condition!r}: write it as category=math"])
            kept.setdefault(column, []).append(value)
        return kept


class Selection(NamedTuple):
    """What the shared options select."""

    config: Path = DEFAULT_CONFIG
    ledger: Path | None = None
    tournament: str | None = None
    as_of: str | None = None
    judge: str | None = None
    dimension: str | None = None
    policy: str = policies.DEFAULT_POLICY
    parser: str | None = None
    imported: SetSelection = SetSelection()

    @property
    def path(self) -> Path:
        """The path of the ledger."""
        return ledger_path(self.ledger, self.config)

    @property
    def rule(self) -> policies.Rule:
        """How replies become outcomes."""
        return rule_of(self.policy, self.parser)


def note_of(rule: policies.Rule) -> str:
    """Return the note on outcomes by another rule than the recorded one."""
    replies = "the recorded verdicts" if rule.parser is None else f"replies read by {rule.parser}"
    counted = "; each order is a separate game" if rule.policy == policies.CONCATENATE else ""
    return f"Outcomes by {rule.policy} from {replies}{counted}. They are not recorded."


def notes_of(source: OutcomeSource) -> tuple[str, ...]:
    """Return the notes on who judged, and on how many pairs or battles have which outcome."""
    judged = [judged_by(source.judges)] if source.judges else []
    return (*judged, *source.accounts, *_doubts(source))


_TOO_MANY: Final = 0.2  # of the judged pairs are inconsistent


def _doubts(source: OutcomeSource) -> Iterator[str]:
    """Yield how inconsistent pairs count, and warn where the verdicts hardly rank anybody."""
    for dimension, battles in source.columns.items():
        account = battles.account
        if account.inconsistent:
            warning = "WARNING: " if account.inconsistent_share > _TOO_MANY else ""
            yield f"{warning}{dimension}: {_disagreement(account, len(source.judges))}"
        if account.tie == account.decided + account.tie + account.inconsistent > 0:
            tied = f"all {account.tie} {account.counted} with an outcome are ties"
            yield f"WARNING: {dimension}: {tied}, so there is no ranking."


def _disagreement(account: Account, n_judges: int) -> str:
    """Say how many pairs are inconsistent, and how they count."""
    if n_judges > 1:
        share = f"{account.inconsistent_share:.0%}"
        return f"on {share} of the judged pairs no outcome has a majority; they do not count."
    counted = "ratings and shares of wins count each verdict by itself"
    return f"{account.disagreement()}; {counted}. `tourney project bias` shows more."


def read_verdicts(selection: Selection, *, settles_only: bool = False) -> JudgedTournament:
    """Read the selected tournament, or only what settles it where outcomes are on record.

    Raises:
        LedgerError: The ledger cannot be read.
        ConfigurationError: An option names something unknown, or contradicts another.
        NothingRecorded: There is no such tournament.
    """
    perspective = Perspective(selection.judge, selection.dimension, selection.rule)
    with Ledger.read_only(selection.path) as opened:
        state = read_tournament(
            opened,
            selection.tournament,
            selection.as_of,
            selection.config,
            settles_only=settles_only and selection.rule.is_recorded,
        )
        until = position_of(opened, selection.as_of)
    return judged_tournament(state, selection.path, until, perspective)


def pinned(selection: Selection) -> Selection:
    """Return the selection as of a fixed position, so that several reads see the same events."""
    with Ledger.read_only(selection.path) as opened:
        return selection._replace(as_of=str(head_at(opened, selection.as_of).position))
