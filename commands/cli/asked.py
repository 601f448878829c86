"""What a reading is asked for: which ledger, as of when, for which judge, by which rule."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from commands.cli.place import head_at, judge_of, on_dimension, position_of, read_tournament
from commands.cli.rule import require_jury
from commands.errors import ConfigurationError
from commands.tables.judges import judged_by
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json, JudgeId
from ledger.store import Ledger
from projections.fold import Projection, State, fold
from projections.tournament.jury import settle_by_majority
from projections.tournament.settlement import Settlement, account_of, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import MAJORITY, RECORDED, Rule


class Asked(NamedTuple):
    """What the shared options say."""

    ledger: Path
    config: Path
    tournament: str | None
    as_of: str | None
    judge: str | None
    dimension: str | None
    rule: Rule


@dataclass(frozen=True)
class Reading:
    """A tournament as of a position, seen through one judge's verdicts."""

    state: Tournament
    judge: JudgeSettings
    ledger: Path
    until: int | None  # the last position that is read; None: the ledger's last
    named_judge: str | None = None  # by --judge
    named_dimension: str | None = None  # by --dimension
    rule: Rule = RECORDED

    @property
    def facts(self) -> dict[str, Json]:
        """What every result in JSON says of where it comes from."""
        newest = self.state.newest
        return {"tournament": self.state.stream, "as_of": newest.position if newest else 0}

    @property
    def judges(self) -> tuple[JudgeSettings, ...]:
        """Whose verdicts count: one judge's, or the majority of a panel's."""
        return self.state.panel if self.rule.policy == MAJORITY else (self.judge,)

    @property
    def judge_id(self) -> JudgeId | None:
        """Who judged; None where it was a jury."""
        return None if self.rule.policy == MAJORITY else self.judge.judge_id

    @property
    def judge_model(self) -> str | None:
        """Which model judged; None where it was a jury."""
        return None if self.rule.policy == MAJORITY else self.judge.model

    @cached_property
    def settlements(self) -> dict[Dimension, tuple[Settlement, ...]]:
        """What became of every pairing, by dimension."""
        prompts = frozenset(prompt.prompt_id for prompt in self.state.bank)
        if self.rule.policy == MAJORITY:
            panel, parser = self.state.panel, self.rule.parser
            settled = settle_by_majority(self.state, prompts, panel, parser)
        else:
            settled = settle(self.state, prompts, self.judge, self.rule)
        return by_dimension(self.state, settled)

    def folded(self, projection: Projection[State]) -> State:
        """Return what another projection makes of the same events."""
        with Ledger.read_only(self.ledger) as opened:
            return fold(projection, opened.read(until=self.until))

    @property
    def notes(self) -> tuple[str, ...]:
        """Say who judged, and what became of every pairing."""
        return (judged_by(self.judges), *self.accounts)

    @property
    def accounts(self) -> tuple[str, ...]:
        """Say for each dimension what became of every pairing."""
        return tuple(
            f"{dimension}: {account_of(group).sentence()}"
            for dimension, group in self.settlements.items()
        )


def read_verdicts(asked: Asked) -> Reading:
    """Read what the options name out of a ledger.

    Raises:
        LedgerError: It cannot be read.
        ConfigurationError: An option names nothing, or does not go with another.
        NothingRecorded: There is no such tournament.
    """
    with Ledger.read_only(asked.ledger) as opened:
        state = read_tournament(opened, asked.tournament, asked.as_of, asked.config)
        until = position_of(opened, asked.as_of)
    seen, by = on_dimension(state, asked.dimension), judge_of(state, asked.judge)
    if asked.rule.policy == MAJORITY:
        require_jury(state, asked.judge)
    return Reading(seen, by, asked.ledger, until, asked.judge, asked.dimension, asked.rule)


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
