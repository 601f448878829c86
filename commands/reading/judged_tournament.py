"""A tournament as of a position, with the outcomes by one judge, or by the majority of a panel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from commands.errors import ConfigurationError, Spelling, as_option
from commands.importing.imported_set import SelectedSet, fact_of, require_values, spelt
from commands.reading.parameters import settings_of
from commands.reading.resolve import judge_of, on_dimension, require_jury
from ledger.events.imports import BattlesImported
from ledger.events.ratings import TieModel
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, EntrantId, Json, JudgeId, PromptId
from ledger.store import Ledger
from projections.battles.columns import Battles, battles_of
from projections.battles.imported_sets import PROMPT_COLUMNS, Where, said_of
from projections.fold import Projection, State, fold
from projections.tournament.jury import settle_by_majority
from projections.tournament.settlement import (
    Compared,
    Settlement,
    by_dimension,
    settle,
    settle_verdicts,
)
from projections.tournament.state import Tournament
from projections.tournament.waves import not_asked, widening_of
from projections.verdicts.policies import MAJORITY, RECORDED, Rule


@dataclass(frozen=True)
class JudgedTournament:
    """A tournament as of a position, judged by one judge or by the majority of its panel."""

    state: Tournament
    judge: JudgeSettings
    ledger: Path
    until: int | None  # the last position to read; None: the ledger's last
    named_judge: str | None = None  # as the caller chose
    named_dimension: str | None = None  # as the caller chose
    rule: Rule = RECORDED
    where: Where = field(default_factory=dict)  # on which of the prompts; empty: on all
    is_live: bool = False  # by the verdicts there are: pairs are reconciled only at the end

    @property
    def facts(self) -> dict[str, Json]:
        """The tournament and the position, which every result in JSON names."""
        newest = self.state.newest
        return {
            "tournament": self.state.stream,
            "as_of": newest.position if newest else 0,
            **fact_of(self.where),
        }

    @property
    def selected_by(self) -> tuple[str, ...]:
        """A sentence on which of the prompts were chosen; none if they are all."""
        return (f"Only prompts of {spelt(self.where)}.",) if self.where else ()

    @cached_property
    def prompts(self) -> frozenset[PromptId]:
        """The prompts that were chosen."""
        return frozenset(
            prompt.prompt_id
            for prompt in self.state.bank
            if all({*said_of(prompt)[name]} & {*kept} for name, kept in self.where.items())
        )

    def votes_of(self, events: Iterable[BattlesImported]) -> list[BattlesImported]:
        """Return those of imported battles that are on the chosen prompts."""
        if not self.where:
            return [*events]
        on_chosen = (
            (event, [battle for battle in event.battles() if battle.question_id in self.prompts])
            for event in events
        )
        return [event.holding(battles) for event, battles in on_chosen if battles]

    @property
    def judges(self) -> tuple[JudgeSettings, ...]:
        """The judges whose verdicts count."""
        return self.state.panel if self.rule.policy == MAJORITY else (self.judge,)

    @property
    def judge_id(self) -> JudgeId | None:
        """The judge's id; None for a majority."""
        return None if self.rule.policy == MAJORITY else self.judge.judge_id

    @property
    def judge_model(self) -> str | None:
        """The judge's model; None for a majority."""
        return None if self.rule.policy == MAJORITY else self.judge.model

    @property
    def roster(self) -> list[EntrantId]:
        """The entrants' names, in the tournament's order."""
        return [entrant.entrant_id for entrant in self.state.roster]

    def settings(self, section: str) -> Mapping[str, object]:
        """Return a section of the settings as the tournament recorded it; empty if it did not."""
        return settings_of(self.state, section)

    @cached_property
    def settlements(self) -> dict[Dimension, tuple[Settlement, ...]]:
        """The settlement of every pairing, by dimension."""
        if self.rule.policy == MAJORITY:
            panel, parser = self.state.panel, self.rule.parser
            settled = settle_by_majority(self.state, self.prompts, panel, parser)
        elif self.is_live:
            settled = settle_verdicts(self.state, self.prompts, self.judge)
        else:
            settled = settle(self.state, self.prompts, self.judge, self.rule)
        return by_dimension(self.state, settled)

    @property
    def compared(self) -> Mapping[Dimension, Sequence[Compared]]:
        """The settlements, by dimension."""
        return {**self.settlements}

    @cached_property
    def columns(self) -> Mapping[Dimension, Battles]:
        """The settlements in columns, by dimension."""
        return {
            name: battles_of(group, widening=self.widening(name))
            for name, group in self.settlements.items()
        }

    def widening(self, dimension: Dimension) -> float:
        """Return how much wider intervals are, since there were looks."""
        return widening_of(self.state, self.judge, dimension)

    def rated_battles(self, ties: TieModel) -> Mapping[Dimension, Battles]:
        """Return the battles of Bradley-Terry, by dimension."""
        return {name: battles.by_verdicts(ties) for name, battles in self.columns.items()}

    def folded(self, projection: Projection[State]) -> State:
        """Fold the same events by another projection."""
        with Ledger.read_only(self.ledger) as opened:
            return fold(projection, opened.read(until=self.until))

    @property
    def accounts(self) -> tuple[str, ...]:
        """A sentence per dimension that accounts for every pairing, and on what is not planned."""
        accounts = (
            f"{name}: {battles.account.sentence()}" for name, battles in self.columns.items()
        )
        return (*accounts, *not_asked(self.state, *self.judges))


OutcomeSource: TypeAlias = JudgedTournament | SelectedSet
"""Where outcomes come from: a tournament, or an imported set. A rating cannot tell which."""


class Perspective(NamedTuple):
    """The judge, the dimension, the rule and the prompts that a reader chose; None: not chosen."""

    judge: str | None = None
    dimension: str | None = None
    rule: Rule = RECORDED
    where: Where = MappingProxyType({})  # on which prompts; empty: on all


def judged_tournament(
    state: Tournament,
    ledger: Path,
    until: int | None,
    perspective: Perspective,
    spelling: Spelling = as_option,
) -> JudgedTournament:
    """Return a tournament as judged from a perspective.

    It was read from the ledger up to a position; None: to the last.

    Raises:
        ConfigurationError: A name is unknown, or does not go with the policy; or no prompt is as
            it is wanted.
    """
    of_dimension = on_dimension(state, perspective.dimension, spelling)
    judge = judge_of(state, perspective.judge, spelling)
    if perspective.rule.policy == MAJORITY:
        require_jury(state, perspective.judge, spelling)
    source = JudgedTournament(
        of_dimension,
        judge,
        ledger,
        until,
        named_judge=perspective.judge,
        named_dimension=perspective.dimension,
        rule=perspective.rule,
        where=perspective.where,
    )
    if source.where:
        _require_prompts(source, spelling("where"))
    return source


def _require_prompts(source: JudgedTournament, option: str) -> None:
    """Require that there are prompts as they are wanted."""
    prompts = [*map(said_of, source.state.bank)]
    known = {
        column: sorted({value for prompt in prompts for value in prompt[column]})
        for column in PROMPT_COLUMNS
        if any(prompt[column] for prompt in prompts)
    }
    require_values(source.state.stream, "prompt", source.where, known, option)
    if not source.prompts:
        fault = f"{option}: no prompt of {source.state.stream!r} has all of these"
        raise ConfigurationError([fault])
