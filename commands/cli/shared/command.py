"""Build the reading commands: shared options, the tournament they select, a table printed."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from commands.cli.shared.options import (
    AsOfOption,
    ConfigOption,
    DiffOption,
    DimensionOption,
    FormatOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    ParserOption,
    PolicyOption,
    TournamentOption,
)
from commands.cli.shared.output import write
from commands.cli.shared.reading import Selection, note_of, read_verdicts
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, difference_table
from commands.errors import ConfigurationError
from commands.runs.choices import position_at, rule_of
from commands.runs.judged_tournament import JudgedTournament
from ledger.store import Ledger
from projections.verdicts.policies import DEFAULT_POLICY, MAJORITY, RECORDED

Own = ParamSpec("Own")
View: TypeAlias = Callable[Concatenate[JudgedTournament, Own], Table]
TableOf: TypeAlias = Callable[Concatenate[Selection, Own], Table]
Act: TypeAlias = Callable[Concatenate[Selection, Own], None]


def tournament_view(view: View[Own]) -> Callable[..., None]:
    """Turn a view of a tournament into a command: its own options, then the shared ones."""
    return _printing(_read_first(view), without={"policy", "parser", "diff"})


def outcomes_view(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command with --policy and --parser."""
    return _printing(_read_first(view), without={"diff"})


def ratings_view(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command with --policy, --parser and --diff."""
    return _printing(_read_first(view))


def table_command(table_of: TableOf[Own]) -> Callable[..., None]:
    """Turn a function that reads on its own into a command with all shared options."""
    return _printing(table_of)


def table_command_without_rule(table_of: TableOf[Own]) -> Callable[..., None]:
    """Turn a function that reads on its own into a command without --policy, --parser, --diff."""
    return _printing(table_of, without={"policy", "parser", "diff"})


def action(act: Act[Own]) -> Callable[..., None]:
    """Turn a function that prints no table into a command with the shared options."""
    return _command(act, act)


def _read_first(view: View[Own]) -> TableOf[Own]:
    """Return a function that reads the selected tournament and returns a view of it."""

    @wraps(view)
    def table_of(selection: Selection, /, *args: Own.args, **own: Own.kwargs) -> Table:
        source = read_verdicts(selection)
        return with_source(view(source, *args, **own), source)

    return table_of


def _printing(table_of: TableOf[Own], without: Collection[str] = ()) -> Callable[..., None]:
    """Return a command that prints a table, or with --diff what changed in it."""

    def show(
        selection: Selection,
        /,
        *,
        diff: DiffOption = None,
        output_format: FormatOption = Format.TABLE,
        as_json: JsonOption = False,
        **own: object,
    ) -> None:
        table = table_of(selection, **own)  # type: ignore[arg-type, call-arg]  # typer passes what its signature asks for
        if diff is not None:
            then = table_of(_since(selection, diff), **own)  # type: ignore[arg-type, call-arg]  # as above
            table = _difference(then, table)
        write(table, output_format, as_json=as_json)

    return _command(show, table_of, without)


def _selection(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    judge: JudgeOption = None,
    dimension: DimensionOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    parser: ParserOption = None,
) -> Selection:
    """Return what the shared options select."""
    path, rule = ledger_path(ledger, config), rule_of(policy, parser)
    return Selection(path, config, tournament, as_of, judge, dimension, rule)


def _command(
    act: Callable[..., None], described_by: Callable[..., object], without: Collection[str] = ()
) -> Callable[..., None]:
    """Return a command whose signature lists its options, since typer reads them there.

    Args:
        act: Called with the selection; its other parameters become options.
        described_by: Gives the command its name and help; its options come first.
        without: Shared options that the command lacks.
    """
    shared = [each for each in _options(_selection) if each.name not in without]
    own, further = _options(described_by)[1:], _options(act)[1:]
    options = {each.name: each for each in (*own, *shared, *further) if each.name not in without}

    def command(**given: object) -> None:
        of_selection: dict[str, Any] = {each.name: given.pop(each.name) for each in shared}
        act(_selection(**of_selection), **given)

    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options.values()]
    )
    command.__annotations__ = {each.name: each.annotation for each in options.values()}
    command.__name__, command.__doc__ = described_by.__name__, described_by.__doc__
    return command


def _options(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the named parameters of a function."""
    parameters = inspect.signature(function).parameters.values()
    return [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]


def _since(selection: Selection, diff: str) -> Selection:
    """Return the selection as of --diff."""
    with Ledger.read_only(selection.ledger) as opened:
        return selection._replace(as_of=str(position_at(opened, diff, option="--diff")))


def _difference(then: Table, now: Table) -> Table:
    """Compare the tables of two positions.

    Raises:
        ConfigurationError: They are by different judges.
    """
    before, after = then.facts.get("judge"), now.facts.get("judge")
    if before != after:
        raise ConfigurationError(
            [f"--diff: the judge was {before!r} then and is {after!r} now; choose one with --judge"]
        )
    return difference_table(then, now)


def with_source(table: Table, source: JudgedTournament) -> Table:
    """Add to a table which tournament it is of, and the rule unless it is the recorded one."""
    facts, notes, rule = source.facts | table.facts, table.notes, source.rule
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [each.judge_id for each in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
