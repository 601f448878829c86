"""`tourney import` and `tourney merge`: what others recorded, taken into the ledger."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from commands.cli.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
)
from commands.cli.place import allows_network, ledger_path
from commands.cli.streams import write
from commands.cli.workshop import require_sound, writing
from commands.counted import counted
from commands.errors import ConfigurationError, DoneWithGaps
from commands.exchange import Taken, take_in
from commands.render import Format
from commands.tables.keeping import conflicts_table
from ledger.exchange import read_export
from ledger.store import Ledger

app = typer.Typer(no_args_is_help=True)


@app.callback()
def import_() -> None:
    """Read what another program or ledger wrote."""


@app.command(name="events")
def import_events(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export events` wrote.")],
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in what was exported. Example: tourney import events events.jsonl."""
    try:
        with file.open("rb") as lines, _writing(ledger, config) as opened:
            taken = take_in(opened, read_export(lines))
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error}"]) from error
    _tell(taken, output_format, as_json=as_json)


def merge(
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="The other ledger.")],
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in the events of another ledger; twice is once. Example: tourney merge host2.db."""
    with Ledger.read_only(other) as theirs, _writing(ledger, config) as ours:
        require_sound(theirs)
        taken = take_in(ours, theirs.rows())
    _tell(taken, output_format, as_json=as_json)


def _writing(ledger: Path | None, config: Path) -> AbstractContextManager[Ledger]:
    return writing(ledger_path(ledger, config), allow_network=allows_network(config))


def _tell(taken: Taken, output_format: Format, *, as_json: bool) -> None:
    write(conflicts_table(taken), output_format, as_json=as_json)
    if taken.conflicts:
        raise DoneWithGaps(
            f"{counted(len(taken.conflicts), 'event')} contradict ours, which were kept"
        )
