"""`tourney import` and `tourney merge`: what others recorded or trained, taken in."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

import typer

from commands.backends.wiring import make_shard_reader, open_parquet
from commands.cli.shared.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
    SkipBadOption,
)
from commands.cli.shared.output import say, write
from commands.cli.shared.workspace import ledger_to_write, workspace
from commands.cli.tables.history import conflicts_table
from commands.cli.tables.imports import (
    battles_table,
    imported_ratings_table,
    imported_responses_table,
    imported_table,
)
from commands.cli.tables.render import Format
from commands.entrants.hydra_import import DEFAULT_DEPTH, ShardSets, import_hydra
from commands.errors import ConfigurationError, DoneWithGaps, counted
from commands.importing.battles import bad_rows
from commands.importing.battles import import_battles as take_in_battles
from commands.importing.formats import plain
from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.catalogue import Format as BattleFormat
from commands.importing.formats.files import records_of
from commands.importing.merge import Taken, take_in
from commands.importing.ratings import import_ratings
from commands.importing.responses import bad_lines, import_responses
from commands.runs.workspace import require_sound
from ledger.exchange import read_export
from ledger.store import Ledger

_CLAIM: Final = (
    "that these are the answers of the configured entrants to the configured prompts is your claim:"
    " a cache holds ids alone; each response keeps the digest of its file, as imported_from"
)


def responses(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Caches: responses_ENTRANT.jsonl.")
    ],
    skip_bad: SkipBadOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in the responses that tap's scripts cached, to go on with judging.

    A cache names entrants and prompts by id alone. That its texts are what the configured entrants
    answered to the configured prompts is your claim; each response keeps its file's digest, as
    imported_from. A response that is there already stays.

    Example: tourney import responses caches/responses_*.jsonl.
    """
    place = workspace(config, ledger)
    with place.recorder(say) as recorder:
        imported = import_responses(recorder, place.opening, files, skip_bad=skip_bad)
    for line in bad_lines(imported.bad):
        say(line)
    if imported.new:
        say(_CLAIM)
    write(imported_responses_table(imported), output_format, as_json=as_json)


_NAME: Final = re.compile(r"[\w.-]+")

app = typer.Typer(no_args_is_help=True)
app.command()(responses)


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
        with file.open("rb") as lines, ledger_to_write(ledger, config) as opened:
            taken = take_in(opened, read_export(lines))
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error}"]) from error
    _tell(taken, output_format, as_json=as_json)


def _columns(says: Mapping[str, str]) -> str:
    """List columns, a line each, as click leaves them."""
    return "\n".join(("\b", *(f"  {name}: {each}" for name, each in says.items())))


_PLAIN_TABLE: Final = (
    f"A plain table has a row for each battle, and these columns:\n\n{_columns(plain.NEEDED)}"
    f"\n\nIt may have further ones:\n\n{_columns(plain.OPTIONAL)}"
)


@app.command(name="battles", epilog=_PLAIN_TABLE)
def import_battles(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .json, .jsonl or .parquet file.")
    ],
    source: Annotated[
        str, typer.Option("--from", help=f"Who wrote it so: {', '.join(FORMATS)}.")
    ] = "plain",
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="The set to join; without it the format's, of which tap has one by dimension.",
        ),
    ] = None,
    skip_bad: SkipBadOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in what others compared.

    Example: tourney import battles train.csv --from lmarena-55k.
    """
    of = _format_of(source)
    chosen = _set_name(of.set_of(file) if name is None else name)
    records = records_of(file, of, open_parquet)
    with ledger_to_write(ledger, config) as opened:
        taken = take_in_battles(opened, file, of, records, name=chosen, skip_bad=skip_bad)
    for row in bad_rows(file, taken):
        say(row)
    write(battles_table(chosen, of, taken), output_format, as_json=as_json)


@app.command(name="elo-ratings")
def import_elo_ratings(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An elo_ratings.json as JudgeArena writes it.")
    ],
    name: Annotated[
        str, typer.Option("--name", help="The set of battles that they belong to.")
    ] = "judgearena",
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in ratings of others, to be seen beside ours.

    Example: tourney import elo-ratings elo_ratings.json.
    """
    with ledger_to_write(ledger, config) as opened:
        imported = import_ratings(opened, file, name=_set_name(name))
    write(imported_ratings_table({name: imported}), output_format, as_json=as_json)


@app.command(name="hydra-weights")
def import_hydra_weights(
    weights: Annotated[
        Path, typer.Argument(metavar="WEIGHTS", help="The folder that the shards were trained on.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write, a new one.")],
    security: Annotated[
        Path | None, typer.Option("--security", metavar="DIR", help="Its security shards.")
    ] = None,
    robustness: Annotated[
        Path | None,
        typer.Option("--robustness", metavar="DIR", help="Its robustness shards, at every step."),
    ] = None,
    uncertainty: Annotated[
        Path | None, typer.Option("--uncertainty", metavar="DIR", help="Its uncertainty head.")
    ] = None,
    heads: Annotated[int, typer.Option("--heads", min=1, help="How many shards a set has.")] = 9,
    heads_depth: Annotated[
        int | None,
        typer.Option(
            "--heads-depth",
            min=1,
            help=f"The layers of a head; without it as the security shards' manifest.json says,"
            f" or {DEFAULT_DEPTH}.",
        ),
    ] = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Convert a Hydra's shards to folders of peft.

    Example: tourney import hydra-weights models/olmo2 models/hydra --security weights/prod.
    """
    sets = ShardSets(security, robustness, uncertainty)
    imported = import_hydra(
        weights, out, sets, make_shard_reader(), n_heads=heads, heads_depth=heads_depth
    )
    write(imported_table(out, imported), output_format, as_json=as_json)
    say(f"{counted(len(imported), 'adapter')} in {out}")


def merge(
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="The other ledger.")],
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Take in the events of another ledger; twice is once. Example: tourney merge host2.db."""
    with Ledger.read_only(other) as theirs, ledger_to_write(ledger, config) as ours:
        require_sound(theirs)
        taken = take_in(ours, theirs.rows())
    _tell(taken, output_format, as_json=as_json)


def _format_of(name: str) -> BattleFormat:
    """Return the format that --from names.

    Raises:
        ConfigurationError: There is no such format.
    """
    if name in FORMATS:
        return FORMATS[name]
    close = get_close_matches(name, FORMATS, n=2, cutoff=0.5)
    remedy = (
        f"did you mean {' or '.join(close)}?" if close else f"it is one of {', '.join(FORMATS)}"
    )
    raise ConfigurationError([f"--from {name!r} is no format of battles; {remedy}"])


def _set_name(name: str) -> str:
    """Return the name of a set of battles, if it can be one.

    Raises:
        ConfigurationError: It cannot.
    """
    if _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        [f"--name {name!r}: letters, digits, dots, dashes and underscores only"]
    )


def _tell(taken: Taken, output_format: Format, *, as_json: bool) -> None:
    write(conflicts_table(taken), output_format, as_json=as_json)
    if taken.conflicts:
        against = counted(len(taken.conflicts), "event contradicts", "events contradict")
        raise DoneWithGaps(f"{against} ours, which were kept")
