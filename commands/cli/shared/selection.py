"""The options that commands share, each declared once, and what they select.

What --tournament, --as-of, --judge and --dimension name is found in `commands/reading/resolve.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar, cast

import click
import typer
from typer.core import TyperCommand
from typer.main import get_params_convertors_ctx_param_name_from_function

from commands.cli.shared import completion, options
from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path, tournament_section
from commands.cli.shared.output import write_table
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.reading.resolve import position_at, rule_of, stream_named, tournament_at
from commands.settings.toml import from_home
from ledger.chain import Head
from ledger.events import ratings
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.battles.imported_sets import COLUMNS, PROMPT_COLUMNS, Unread, Where
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSERS
from projections.verdicts.policies import DEFAULT_POLICY, POLICY_NAMES, RECORDED, Rule

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True)
class Selection:
    """What the shared options select. Each field is an option, of the commands that name it."""

    name: Annotated[
        str | None, options.of_set("Use this imported set of battles instead of the tournament.")
    ] = None  # of an imported set, which is read instead of a tournament
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Only battles with this value, such as category=math; repeatable. Columns:"
            f" {', '.join(PROMPT_COLUMNS)}; with --name {', '.join(COLUMNS)}.",
        ),
    ] = None
    unread: Annotated[
        Unread | None,
        typer.Option(
            help="How replies without a verdict count: drop (default), drop-pair (both games of the"
            " prompt, as arena-hard v2.0) or tie (as JudgeArena's hard ratings)."
        ),
    ] = None
    mode: Annotated[
        ratings.Mode, typer.Option(help="headline: the whole bank; pilot: a stratified subset.")
    ] = "headline"
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for consent to the cost. The cap still holds.")
    ] = False
    max_usd: Annotated[
        float | None,
        typer.Option(
            min=0,
            callback=options.finite,
            help="Dollar cap, including what this tournament has already spent.",
        ),
    ] = None
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="Receive ended batches, send open queries, and exit 7 if a batch is in flight.",
        ),
    ] = False
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Stop after this many. 0: only record the settings."),
    ] = None
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Exit 0 even if responses or verdicts are missing.")
    ] = False
    engine: options.Engine = "local"
    config: Annotated[Path, typer.Option("--config", "-c", help="The tournament's settings.")] = (
        DEFAULT_CONFIG
    )
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            "-l",
            envvar="TOURNEY_LEDGER",
            # in a variable or after =, shells let ~ be
            callback=lambda path: path and from_home(path),
            help="The ledger file. Default: [tournament] ledger, else tournament.db.",
        ),
    ] = None
    tournament: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.tournaments,
            help="Which tournament, if the ledger holds several.",
        ),
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            help="Read the ledger up to this position or time (ISO 8601; UTC if no zone is named)."
        ),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.judges,
            help="Use this judge's verdicts. Default: the first judge with outcomes.",
        ),
    ] = None
    dimension: options.Dimension = None
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=lambda: [*POLICY_NAMES],
            help=f"How verdicts become outcomes: {', '.join(POLICY_NAMES)}.",
        ),
    ] = DEFAULT_POLICY
    parser: Annotated[
        str | None,
        typer.Option(
            autocompletion=lambda: sorted({name.partition("@")[0] for name in PARSERS}),
            help="Read the stored replies again with this parser, at no cost.",
        ),
    ] = None
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
    def chosen_format(self) -> Format:
        """The format of the output."""
        return Format.JSON if self.as_json else self.output_format

    def write(self, table: Table) -> None:
        """Print a table in the chosen format."""
        write_table(table, self.chosen_format)

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
