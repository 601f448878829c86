"""What every reading command shares: its options, and a table of what they ask for."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeAlias

from commands.cli.asked import Asked, Reading, read_verdicts
from commands.cli.options import (
    DEFAULT_CONFIG,
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
from commands.cli.place import ledger_path
from commands.cli.rule import note_of, rule_of
from commands.cli.streams import write
from commands.errors import ConfigurationError
from commands.render import Format
from commands.tables.difference import difference_table
from commands.tables.table import Table
from projections.reconcile import DEFAULT_POLICY, MAJORITY
from projections.rule import RECORDED

Own = ParamSpec("Own")
View: TypeAlias = Callable[Concatenate[Reading, Own], Table]
Answer: TypeAlias = Callable[Concatenate[Asked, Own], Table]


def reading(view: View[Own]) -> Callable[..., None]:
    """Turn a view of a reading into a command: its own options, then the shared ones."""
    return _command(_answer(view), without={"policy", "parser", "diff"})


def reading_verdicts(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command, which may make them by another rule."""
    return _command(_answer(view), without={"diff"})


def reading_ratings(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command that can also show what changed in its table."""
    return _command(_answer(view))


def answering(answer: Answer[Own]) -> Callable[..., None]:
    """Do the same for what reads on its own, a tournament or something else."""
    return _command(answer)


def _answer(view: View[Own]) -> Answer[Own]:
    """Return what reads the tournament that is asked for, and shows a view of it."""

    @wraps(view)
    def answer(asked: Asked, /, *args: Own.args, **own: Own.kwargs) -> Table:
        source = read_verdicts(asked)
        return introduced(view(source, *args, **own), source)

    return answer


def _command(answer: Answer[Own], without: Collection[str] = ()) -> Callable[..., None]:
    """Return a command; typer reads its options from its signature, so they are put there.

    Args:
        answer: Gives the table; what it takes beside the shared options are options, too.
        without: Shared options that it does not have.
    """

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
        diff: DiffOption = None,
        output_format: FormatOption = Format.TABLE,
        as_json: JsonOption = False,
        **own: object,
    ) -> None:
        path, rule = ledger_path(ledger, config), rule_of(policy, parser)
        asked = Asked(path, config, tournament, as_of, judge, dimension, rule)
        table = answer(asked, **own)  # type: ignore[arg-type, call-arg]  # typer passes what the signature below asks for
        if diff is not None:
            then = answer(asked._replace(as_of=diff), **own)  # type: ignore[arg-type, call-arg]  # as above
            table = _difference(then, table)
        write(table, output_format, as_json=as_json)

    hidden = {"own", *without}
    shared = [p for p in inspect.signature(command).parameters.values() if p.name not in hidden]
    of_answer = list(inspect.signature(answer).parameters.values())[1:]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*of_answer, *shared)]
    )
    command.__annotations__ = {p.name: p.annotation for p in (*of_answer, *shared)}
    command.__name__, command.__doc__ = answer.__name__, answer.__doc__
    return command


def _difference(then: Table, now: Table) -> Table:
    """Compare two positions, if both are seen through the same judge.

    Raises:
        ConfigurationError: They are not.
    """
    before, after = then.facts.get("judge"), now.facts.get("judge")
    if before != after:
        raise ConfigurationError(
            [f"--diff: the judge was {before!r} then and is {after!r} now; choose one by --judge"]
        )
    return difference_table(then, now)


def introduced(table: Table, source: Reading) -> Table:
    """Say beside a result where it comes from, and by which rule if it is not the usual one."""
    facts, notes, rule = source.facts | table.facts, table.notes, source.rule
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [each.judge_id for each in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
