"""What every reading command shares: which ledger, as of when, for which judge, in what format."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Concatenate, ParamSpec

from commands.cli.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    DimensionOption,
    FormatOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    TournamentOption,
)
from commands.cli.place import judge_of, ledger_path, on_dimension, read_tournament
from commands.cli.streams import write
from commands.render import Format
from commands.tables.table import Table
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json
from ledger.store import Ledger
from projections.settlement import Settlement, account_of, by_dimension, settle
from projections.tournament import Tournament

Own = ParamSpec("Own")


@dataclass(frozen=True)
class Reading:
    """A tournament as of a position, seen through one judge's verdicts."""

    state: Tournament
    judge: JudgeSettings

    @property
    def facts(self) -> dict[str, Json]:
        """What every result in JSON says of where it comes from."""
        newest = self.state.newest
        return {"tournament": self.state.stream, "as_of": newest.position if newest else 0}

    @cached_property
    def settlements(self) -> dict[Dimension, tuple[Settlement, ...]]:
        """What became of every pairing, by dimension."""
        prompts = frozenset(prompt.prompt_id for prompt in self.state.bank)
        return by_dimension(self.state, settle(self.state, prompts, self.judge))

    @property
    def accounts(self) -> tuple[str, ...]:
        """Say for each dimension what became of every pairing."""
        return tuple(
            f"{dimension}: {account_of(group).sentence()}"
            for dimension, group in self.settlements.items()
        )


def reading(view: Callable[Concatenate[Reading, Own], Table]) -> Callable[..., None]:
    """Turn a view of a reading into a command: its own options, then the shared ones.

    typer reads a command's options from its signature, so the shared ones are added to it.
    """

    def command(
        *,
        config: ConfigOption = DEFAULT_CONFIG,
        ledger: LedgerOption = None,
        tournament: TournamentOption = None,
        as_of: AsOfOption = None,
        judge: JudgeOption = None,
        dimension: DimensionOption = None,
        output_format: FormatOption = Format.TABLE,
        as_json: JsonOption = False,
        **own: object,
    ) -> None:
        with Ledger.read_only(ledger_path(ledger, config)) as opened:
            state = read_tournament(opened, tournament, as_of, config)
        source = Reading(on_dimension(state, dimension), judge_of(state, judge))
        table = view(source, **own)  # type: ignore[arg-type, call-arg]  # typer passes what the signature below asks for
        write(replace(table, facts=source.facts | table.facts), output_format, as_json=as_json)

    shared = [p for p in inspect.signature(command).parameters.values() if p.name != "own"]
    of_view = list(inspect.signature(view).parameters.values())[1:]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*of_view, *shared)]
    )
    command.__annotations__ = {p.name: p.annotation for p in (*of_view, *shared)}
    command.__name__, command.__doc__ = view.__name__, view.__doc__
    return command
