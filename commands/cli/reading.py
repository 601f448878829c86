"""What every reading command shares: which ledger, as of when, for which judge, in what format."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias

from commands.cli.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    DimensionOption,
    FormatOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    ParserOption,
    PolicyOption,
    TournamentOption,
)
from commands.cli.place import (
    judge_of,
    ledger_path,
    on_dimension,
    position_of,
    read_tournament,
)
from commands.cli.rule import note_of, require_jury, rule_of
from commands.cli.streams import write
from commands.render import Format
from commands.tables.table import Table
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json
from ledger.store import Ledger
from projections.fold import Projection, State, fold
from projections.jury import settle_by_majority
from projections.reconcile import DEFAULT_POLICY, MAJORITY
from projections.rule import RECORDED, Rule
from projections.settlement import Settlement, account_of, by_dimension, settle
from projections.tournament import Tournament

Own = ParamSpec("Own")
View: TypeAlias = Callable[Concatenate["Reading", Own], Table]


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


def reading(view: View[Own]) -> Callable[..., None]:
    """Turn a view of a reading into a command: its own options, then the shared ones."""
    return _command(view, by_rule=False)


def reading_verdicts(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command, which may make them by another rule."""
    return _command(view, by_rule=True)


def _command(view: View[Own], *, by_rule: bool) -> Callable[..., None]:
    """Return a command; typer reads its options from its signature, so they are put there."""

    def command(
        *,
        config: ConfigOption = DEFAULT_CONFIG,
        ledger: LedgerOption = None,
        tournament: TournamentOption = None,
        as_of: AsOfOption = None,
        judge: JudgeOption = None,
        dimension: DimensionOption = None,
        policy: PolicyOption = DEFAULT_POLICY,
        parser: ParserOption = None,
        output_format: FormatOption = Format.TABLE,
        as_json: JsonOption = False,
        **own: object,
    ) -> None:
        path = ledger_path(ledger, config)
        with Ledger.read_only(path) as opened:
            state = read_tournament(opened, tournament, as_of, config)
            until = position_of(opened, as_of)
        seen, by = on_dimension(state, dimension), judge_of(state, judge)
        source = Reading(seen, by, path, until, judge, dimension, rule=rule_of(policy, parser))
        if source.rule.policy == MAJORITY:
            require_jury(state, judge)
        table = view(source, **own)  # type: ignore[arg-type, call-arg]  # typer passes what the signature below asks for
        write(_introduced(table, source), output_format, as_json=as_json)

    hidden = {"own"} if by_rule else {"own", "policy", "parser"}
    shared = [p for p in inspect.signature(command).parameters.values() if p.name not in hidden]
    of_view = list(inspect.signature(view).parameters.values())[1:]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*of_view, *shared)]
    )
    command.__annotations__ = {p.name: p.annotation for p in (*of_view, *shared)}
    command.__name__, command.__doc__ = view.__name__, view.__doc__
    return command


def _introduced(table: Table, source: Reading) -> Table:
    """Say beside a result where it comes from, and by which rule if it is not the usual one."""
    facts, notes, rule = source.facts | table.facts, table.notes, source.rule
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [each.judge_id for each in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
