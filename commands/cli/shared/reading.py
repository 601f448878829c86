"""The selection that shared options make, and how it is read from a ledger."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.ledger import (
    DEFAULT_CONFIG,
    head_at,
    ledger_path,
    position_of,
    read_tournament,
)
from commands.cli.tables.table import judged_by
from commands.runs.judged_tournament import (
    JudgedTournament,
    OutcomeSource,
    Perspective,
    judged_tournament,
)
from commands.runs.resolve import rule_of
from ledger.store import Ledger
from projections.tournament.compared import Account
from projections.verdicts import policies
from projections.verdicts.parsers import PARSERS


class Selection(NamedTuple):
    """What the shared options select."""

    config: options.Config = DEFAULT_CONFIG
    ledger: options.Ledger = None
    tournament: options.Tournament = None
    as_of: options.AsOf = None
    judge: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.judges,
            help="Use this judge's verdicts. Default: the first judge with outcomes.",
        ),
    ] = None
    dimension: Annotated[
        str | None, typer.Option(autocompletion=completion.dimensions, help="Only this dimension.")
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=lambda: [*policies.POLICY_NAMES],
            help=f"How verdicts become outcomes: {', '.join(policies.POLICY_NAMES)}.",
        ),
    ] = policies.DEFAULT_POLICY
    parser: Annotated[
        str | None,
        typer.Option(
            autocompletion=lambda: sorted({each.partition("@")[0] for each in PARSERS}),
            help="Read the stored replies again with this parser, at no cost.",
        ),
    ] = None
    diff: Annotated[
        str | None, typer.Option(help="Show what changed since this position or time.")
    ] = None

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
