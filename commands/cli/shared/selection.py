"""The options that commands share, each declared once, and what they select."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

import click
from typer.core import TyperCommand
from typer.main import get_params_convertors_ctx_param_name_from_function

from commands.cli.shared import options
from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path, tournament_section
from commands.cli.shared.output import Writer
from commands.cli.tables.render import Format
from commands.errors import ConfigurationError
from commands.reading.resolve import position_at, rule_of, stream_named, tournament_at
from ledger.chain import Head
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.battles.imported_sets import Where
from projections.tournament.state import Tournament
from projections.verdicts.policies import DEFAULT_POLICY, RECORDED, Rule

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True)
class Selection:
    """What the shared options select. Each field is an option, of the commands that name it."""

    name: options.SetName = None  # of an imported set, which is read instead of a tournament
    where: options.Where = None
    unread: options.UnreadRule = None
    mode: options.Mode = "headline"
    yes: options.Yes = False
    max_usd: options.MaxUsd = None
    no_wait: options.NoWait = False
    limit: options.AskingLimit = None
    allow_gaps: options.AllowGaps = False
    engine: options.Engine = "local"
    config: options.Config = DEFAULT_CONFIG
    ledger: options.Ledger = None
    tournament: options.Tournament = None
    as_of: options.AsOf = None
    judge: options.Judge = None
    dimension: options.Dimension = None
    policy: options.Policy = DEFAULT_POLICY
    parser: options.Parser = None
    output_format: options.OutputFormat = Format.TABLE
    as_json: options.AsJson = False

    @property
    def path(self) -> Path:
        """The path of the ledger."""
        return ledger_path(self.ledger, self.config)

    def stream_in(self, opened: Ledger) -> StreamId:
        """Return the tournament that is named, that of the settings, or the only one."""
        location = tournament_section(self.config)
        return stream_named(opened, self.tournament or (location.id if location else None))

    def position_in(self, opened: Ledger) -> int | None:
        """Resolve --as-of to a position."""
        return None if self.as_of is None else position_at(opened, self.as_of, option="--as-of")

    def head_in(self, opened: Ledger) -> Head:
        """Return the ledger's head, at --as-of if it is given."""
        position = self.position_in(opened)
        chain = None if position is None else opened.chain_at(position)
        return opened.head if position is None or chain is None else Head(position, chain)

    def state_in(self, opened: Ledger) -> Tournament:
        """Fold the tournament."""
        until = self.position_in(opened)
        return tournament_at(opened, self.stream_in(opened), until, self.as_of)

    @property
    def rule(self) -> Rule:
        """How replies become outcomes."""
        return rule_of(self.policy, self.parser)

    @property
    def writer(self) -> Writer:
        """How the result is written."""
        return Writer(self.output_format, self.as_json)

    @property
    def is_of_set(self) -> bool:
        """Whether an imported set is read instead of a tournament."""
        if self.unread is not None and self.name is None:
            raise ConfigurationError(["--unread is for battles of an imported set: add --name"])
        return self.name is not None

    @property
    def kept(self) -> Where:
        """By column the values of the battles that are kept."""
        kept: dict[str, list[str]] = {}
        for condition in self.where or ():
            column, is_given, value = condition.partition("=")
            if not is_given:
                raise ConfigurationError([f"--where {condition!r}: write it as category=math"])
            kept.setdefault(column, []).append(value)
        return kept

    def require_no_tournament(self) -> None:
        """Refuse options that do not apply to imported battles."""
        if self.tournament or self.judge or self.dimension or self.rule != RECORDED:
            several = "--tournament, --judge, --dimension, --policy and --parser"
            why = f"{several} apply to a tournament's battles: leave out --name"
            instead = "; a set's judge is chosen by --where judge=NAME" if self.judge else ""
            raise ConfigurationError([why + instead])


OF_LEDGER: Final = ("config", "ledger")
OF_TOURNAMENT: Final = (*OF_LEDGER, "tournament", "as_of")
JUDGED: Final = (*OF_TOURNAMENT, "judge", "dimension")
BY_RULE: Final = (*JUDGED, "policy", "parser")
BATTLES: Final = ("name", "where", "unread", *BY_RULE)
SPENDING: Final = ("yes", "max_usd")
ASKING: Final = (*SPENDING, "no_wait", "limit", "allow_gaps", *OF_LEDGER)
WRITTEN: Final = ("output_format", "as_json")


class Selected(click.Context):
    """What a command is called in: it has what the shared options select."""

    selection: Selection


def selecting(*fields: str) -> Callable[[Command], Command]:
    """Give a command the options of some fields of a selection, which its context has."""

    def with_options(command: Command) -> Command:
        vars(command)["selects"] = fields
        return command

    return with_options


class SelectingCommand(TyperCommand):
    """A command with its own options, and after them those of its selection."""

    context_class = Selected

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)  # type: ignore[arg-type]  # as typer calls it
        shared, self._convertors, _ = get_params_convertors_ctx_param_name_from_function(Selection)
        self._fields: tuple[str, ...] = getattr(self.callback, "selects", ())
        self.params += [param for param in shared if param.name in self._fields]

    def invoke(self, ctx: click.Context) -> object:
        """Call the command with its own options, and with the selection in its context."""
        values = {name: ctx.params.pop(name) for name in self._fields}
        for name in self._convertors.keys() & values.keys():
            values[name] = self._convertors[name](values[name])
        cast("Selected", ctx).selection = Selection(**values)
        return super().invoke(ctx)
