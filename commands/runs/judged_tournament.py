"""A tournament as a ledger has it up to a position, seen through one judge's verdicts."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from commands.errors import Spelling, as_option
from commands.runs.choices import judge_of, on_dimension, require_jury
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, EntrantId, Json, JudgeId
from ledger.store import Ledger
from projections.fold import Projection, State, fold
from projections.tournament.jury import settle_by_majority
from projections.tournament.settlement import Settlement, account_of, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import MAJORITY, RECORDED, Rule


@dataclass(frozen=True)
class JudgedTournament:
    """A tournament as of a position, seen through one judge's verdicts."""

    state: Tournament
    judge: JudgeSettings
    ledger: Path
    until: int | None  # the last position that is read; None: the ledger's last
    named_judge: str | None = None  # by the caller
    named_dimension: str | None = None  # by the caller
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

    @property
    def roster(self) -> list[EntrantId]:
        """The entrants' names, in the tournament's order."""
        return [entrant.entrant_id for entrant in self.state.roster]

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
    def accounts(self) -> tuple[str, ...]:
        """Say for each dimension what became of every pairing."""
        return tuple(
            f"{dimension}: {account_of(group).sentence()}"
            for dimension, group in self.settlements.items()
        )


class Perspective(NamedTuple):
    """Whose verdicts count, on which dimension, and by which rule; None: not chosen."""

    judge: str | None = None
    dimension: str | None = None
    rule: Rule = RECORDED


def judged_tournament(
    state: Tournament,
    ledger: Path,
    until: int | None,
    perspective: Perspective,
    spelling: Spelling = as_option,
) -> JudgedTournament:
    """Return a tournament as it is seen from a perspective.

    Args:
        state: The tournament.
        ledger: Where it was read.
        until: The last position that was read; None: the ledger's last.
        perspective: What the caller chose.
        spelling: How messages name what the caller chose.

    Raises:
        ConfigurationError: A name is not known, or does not go with the policy.
    """
    judge, dimension, rule = perspective
    seen = on_dimension(state, dimension, spelling)
    by = judge_of(state, judge, spelling)
    if rule.policy == MAJORITY:
        require_jury(state, judge, spelling)
    return JudgedTournament(seen, by, ledger, until, judge, dimension, rule)
