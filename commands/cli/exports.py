"""`tourney export`: the ledger in another form."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from commands.cli.asked import Asked, Reading, read_verdicts, require_no_tournament
from commands.cli.battle_sets import chosen, imported_battles
from commands.cli.bt_records import ratings_of_imported, ratings_of_tournament
from commands.cli.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    DimensionOption,
    JudgeOption,
    LedgerOption,
    ParserOption,
    PolicyOption,
    TournamentOption,
)
from commands.cli.place import head_at, ledger_path
from commands.cli.rule import rule_of
from commands.cli.streams import say
from commands.cli.workshop import require_sound
from commands.run_folder import write_whole
from ledger.exchange import export_lines
from ledger.store import Ledger
from projections.battle_records import Fields, of_imported, of_settlements
from projections.reconcile import DEFAULT_POLICY

app = typer.Typer(no_args_is_help=True)

OutputOption: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file; without it, stdout.")
]
NameOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--name", help="A set of imported battles; without it the tournament's own."),
]


@app.callback()
def export() -> None:
    """Write the ledger in another form."""


@app.command(name="events")
def export_events(
    output: OutputOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Write all events as lines of JSON. Example: tourney export events -o events.jsonl."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        require_sound(opened)
        _write(export_lines(opened.rows(until=head_at(opened, as_of).position)), output)


@app.command(name="battles")
def export_battles(
    output: OutputOption = None,
    name: NameOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    judge: JudgeOption = None,
    dimension: DimensionOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    parser: ParserOption = None,
) -> None:
    """Write battles as JudgeArena does. Example: tourney export battles -o battles.jsonl."""
    path, rule = ledger_path(ledger, config), rule_of(policy, parser)
    asked = Asked(path, config, tournament, as_of, judge, dimension, rule)
    if name is None:
        source = _said(asked)
        _write(_lines(_records(source)), output)
    else:
        require_no_tournament(asked)
        with Ledger.read_only(path) as opened:
            until = head_at(opened, as_of).position
            battles = chosen(imported_battles(opened, until), [name])
        _write(_lines(of_imported(battles.events)), output)


@app.command(name="elo-ratings")
def export_elo_ratings(
    output: OutputOption = None,
    name: NameOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    judge: JudgeOption = None,
    dimension: DimensionOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    parser: ParserOption = None,
) -> None:
    """Write Bradley-Terry ratings as JudgeArena does.

    Example: tourney export elo-ratings -o elo_ratings.json.
    """
    path, rule = ledger_path(ledger, config), rule_of(policy, parser)
    asked = Asked(path, config, tournament, as_of, judge, dimension, rule)
    records = (
        ratings_of_tournament(_said(asked)) if name is None else ratings_of_imported(asked, name)
    )
    text = json.dumps(records, indent=2, allow_nan=False)
    _write([f"{text}\n".encode()], output)


def _said(asked: Asked) -> Reading:
    """Read a tournament, and say beside the result what became of its pairings."""
    source = read_verdicts(asked)
    for account in source.accounts:
        say(account)
    return source


def _records(source: Reading) -> Iterator[Fields]:
    """Yield a tournament's battles, dimension after dimension."""
    for settlements in source.settlements.values():
        yield from of_settlements(settlements, source.judge_model)


def _lines(records: Iterable[Fields]) -> Iterator[bytes]:
    """Yield lines of JSON; escaped to ASCII, they are safe on a terminal."""
    for record in records:
        yield f"{json.dumps(record, allow_nan=False)}\n".encode()


def _write(lines: Iterable[bytes], output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.writelines(lines)
    else:
        write_whole(output, lines)
