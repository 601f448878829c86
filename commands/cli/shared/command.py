"""What every reading command shares: its options, and a table of what they ask for."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

from commands.cli.shared.ledger import ledger_path
from commands.cli.shared.options import (
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
from commands.cli.shared.output import write
from commands.cli.shared.reading import Asked, note_of, read_verdicts
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, difference_table
from commands.errors import ConfigurationError
from commands.runs.choices import position_at, rule_of
from commands.runs.judged_tournament import JudgedTournament
from ledger.store import Ledger
from projections.verdicts.policies import DEFAULT_POLICY, MAJORITY, RECORDED

Own = ParamSpec("Own")
View: TypeAlias = Callable[Concatenate[JudgedTournament, Own], Table]
Answer: TypeAlias = Callable[Concatenate[Asked, Own], Table]
Act: TypeAlias = Callable[Concatenate[Asked, Own], None]


def reading(view: View[Own]) -> Callable[..., None]:
    """Turn a view of a reading into a command: its own options, then the shared ones."""
    return _showing(_answer(view), without={"policy", "parser", "diff"})


def reading_verdicts(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command, which may make them by another rule."""
    return _showing(_answer(view), without={"diff"})


def reading_ratings(view: View[Own]) -> Callable[..., None]:
    """Turn a view of outcomes into a command that can also show what changed in its table."""
    return _showing(_answer(view))


def answering(answer: Answer[Own]) -> Callable[..., None]:
    """Do the same for what reads on its own, a tournament or something else."""
    return _showing(answer)


def answering_by_own_rule(answer: Answer[Own]) -> Callable[..., None]:
    """Do the same where only one rule makes sense, and only as of one position."""
    return _showing(answer, without={"policy", "parser", "diff"})


def _answer(view: View[Own]) -> Answer[Own]:
    """Return what reads the tournament that is asked for, and shows a view of it."""

    @wraps(view)
    def answer(asked: Asked, /, *args: Own.args, **own: Own.kwargs) -> Table:
        source = read_verdicts(asked)
        return introduced(view(source, *args, **own), source)

    return answer


def asking(act: Act[Own]) -> Callable[..., None]:
    """Turn what is done with what is asked for into a command, which writes no table."""
    return _command(act, act)


def _showing(answer: Answer[Own], without: Collection[str] = ()) -> Callable[..., None]:
    """Return a command that writes the table of an answer, or what changed in it."""

    def show(
        asked: Asked,
        /,
        *,
        diff: DiffOption = None,
        output_format: FormatOption = Format.TABLE,
        as_json: JsonOption = False,
        **own: object,
    ) -> None:
        table = answer(asked, **own)  # type: ignore[arg-type, call-arg]  # typer passes what its signature asks for
        if diff is not None:
            then = answer(_since(asked, diff), **own)  # type: ignore[arg-type, call-arg]  # as above
            table = _difference(then, table)
        write(table, output_format, as_json=as_json)

    return _command(show, answer, without)


def _asked(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    judge: JudgeOption = None,
    dimension: DimensionOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    parser: ParserOption = None,
) -> Asked:
    """Return what the shared options say."""
    path, rule = ledger_path(ledger, config), rule_of(policy, parser)
    return Asked(path, config, tournament, as_of, judge, dimension, rule)


def _command(
    act: Callable[..., None], named: Callable[..., object], without: Collection[str] = ()
) -> Callable[..., None]:
    """Return a command; typer reads its options from its signature, so they are put there.

    Args:
        act: Does it with what is asked for; what it takes beside that are options, too.
        named: What the command is called like, and whose options come first.
        without: Shared options that it does not have.
    """
    shared = [each for each in _options(_asked) if each.name not in without]
    own, further = _options(named)[1:], _options(act)[1:]
    options = {each.name: each for each in (*own, *shared, *further) if each.name not in without}

    def command(**given: object) -> None:
        of_asked: dict[str, Any] = {each.name: given.pop(each.name) for each in shared}
        act(_asked(**of_asked), **given)

    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options.values()]
    )
    command.__annotations__ = {each.name: each.annotation for each in options.values()}
    command.__name__, command.__doc__ = named.__name__, named.__doc__
    return command


def _options(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return what a function takes by name."""
    parameters = inspect.signature(function).parameters.values()
    return [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]


def _since(asked: Asked, diff: str) -> Asked:
    """Return what is asked for as it was at --diff."""
    with Ledger.read_only(asked.ledger) as opened:
        return asked._replace(as_of=str(position_at(opened, diff, option="--diff")))


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


def introduced(table: Table, source: JudgedTournament) -> Table:
    """Say beside a result where it comes from, and by which rule if it is not the usual one."""
    facts, notes, rule = source.facts | table.facts, table.notes, source.rule
    if rule != RECORDED:
        facts |= {"policy": rule.policy, "parser": rule.parser}
        notes = (*notes, note_of(rule))
    if rule.policy == MAJORITY:
        facts |= {"judge": None, "judges": [each.judge_id for each in source.state.panel]}
    return replace(table, facts=facts, notes=notes)
