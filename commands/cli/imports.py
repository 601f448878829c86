"""`tourney import` and `merge`: read responses, battles, ratings, weights or events of others."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from commands.auditing.soundness import require_sound
from commands.backends.wiring import make_shard_reader, open_parquet
from commands.cli.shared import options
from commands.cli.shared.ledger import DEFAULT_CONFIG, ledger_path
from commands.cli.shared.output import Writer, say
from commands.cli.shared.reading import set_name
from commands.cli.shared.workspace import ledger_to_write, workspace
from commands.cli.tables import imports as tables
from commands.cli.tables.history import conflicts_table
from commands.cli.tables.outcomes import imported_ratings_table
from commands.cli.tables.render import Format
from commands.entrants.hydra_import import DEFAULT_DEPTH, ShardSets, import_hydra
from commands.errors import ConfigurationError, DoneWithGaps, counted
from commands.importing.battles import BattleFile, bad_rows
from commands.importing.battles import import_battles as take_in_battles
from commands.importing.formats import plain
from commands.importing.formats.catalogue import FORMATS, BattleFormat, format_of
from commands.importing.formats.files import columns_of, readable_again, records_of
from commands.importing.merge import MergeCounts, merge_ledger
from commands.importing.ratings import import_ratings
from commands.importing.responses import bad_lines, import_responses
from ledger.errors import BrokenExport
from ledger.exchange import read_export
from ledger.store import Ledger

_LONGEST_HEADER: Final = 1_000  # bytes
_CLAIM: Final = (
    "tourney cannot check that these responses are by the configured entrants to the configured"
    " prompts: the files hold only ids; each response records its file's digest as imported_from"
)


def responses(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Cache files: responses_ENTRANT.jsonl.")
    ],
    skip_bad: options.SkipBad = False,
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Import responses that tap's scripts cached, to judge them without generating again.

    The files hold only the ids of entrants and prompts, so tourney cannot check that the texts come
    from the configured entrants and prompts. Each response records its file's digest as
    imported_from. Responses already on record are kept.

    Example: tourney import responses caches/responses_*.jsonl
    """
    writer = Writer(output_format, as_json)
    place = workspace(config, ledger)
    files = [*map(options.or_standard_input, files)]
    with place.recorder(say) as recorder:
        imported = import_responses(recorder, place.opening, files, skip_bad=skip_bad)
    for line in bad_lines(imported.bad):
        say(line)
    used = {response.file for response in chain(imported.new, imported.known)}
    used |= {line.file for line in imported.bad}
    for file in dict.fromkeys(files):
        if file in imported.empty:
            say(f"nothing of {file} was imported: it is empty")
        elif file not in used:
            say(f"nothing of {file} was imported: another file has the same responses")
    if imported.new:
        say(_CLAIM)
    writer.write(tables.imported_responses_table(imported))


def _merge_export(file: Path, into: Path) -> MergeCounts:
    """Merge what `tourney export events` wrote."""
    try:
        with file.open("rb") as lines, ledger_to_write(into) as opened:
            first = lines.readline(_LONGEST_HEADER)  # a device may have no end
            return merge_ledger(opened, read_export(chain([first] if first else [], lines)))
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error}"]) from error
    except BrokenExport as error:
        raise BrokenExport(error.line, error.why, f"{file}, ") from error


def _columns(says: Mapping[str, str]) -> str:
    """List columns, one a line; the backspace stops click from wrapping them."""
    return "\n".join(("\b", *(f"  {name}: {meaning}" for name, meaning in says.items())))


_PLAIN_TABLE: Final = (
    f"A plain table has one row per battle and these columns:\n\n{_columns(plain.NEEDED)}"
    f"\n\nThese columns are optional:\n\n{_columns(plain.OPTIONAL)}"
)


def import_battles(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="A .csv, .json, .jsonl or .parquet file; - is standard input."
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            autocompletion=lambda: [*FORMATS],
            help=f"The format of the files: {', '.join(FORMATS)}. Default: the one that has their"
            " columns.",
        ),
    ] = None,
    name: Annotated[
        str | None, options.of_set("Name of the set to import into. Default: the format's name.")
    ] = None,
    skip_bad: options.SkipBad = False,
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Import battles of other programs. Battles that the set already holds are skipped.

    Example: tourney import battles train.csv
    """
    writer = Writer(output_format, as_json)
    of = None if source is None else _format_named(source)
    with ExitStack() as copies:
        chosen = [
            _battle_file(file, of, name, copies.enter_context(readable_again(file)))
            for file in map(options.or_standard_input, files)
        ]
        opened = copies.enter_context(ledger_to_write(ledger_path(ledger, config)))
        taken = take_in_battles(opened, chosen, skip_bad=skip_bad)
    for file in taken:
        for row in bad_rows(file):
            say(row)
    writer.write(tables.battles_table(taken))


vars(import_battles)["epilog"] = _PLAIN_TABLE  # below its options in help


def _battle_file(
    file: Path, of: BattleFormat | None, name: str | None, content: Path
) -> BattleFile:
    """Return a file of battles; a pipe has no name that could tell its set."""
    of = of or format_of(columns_of(file, open_parquet, content=content))
    if name is None and of.set_by_file is not None and not file.suffix:
        raise ConfigurationError([f"{file} does not say which set these battles join; use --name"])
    into = set_name(of.set_of(file) if name is None else name)
    records = records_of(file, of, open_parquet, content=content)
    return BattleFile(file, records, of, into, content)


def import_elo_ratings(
    file: Annotated[Path, typer.Argument(help="An elo_ratings.json as JudgeArena writes it.")],
    name: Annotated[str, options.of_set("Name of the set to import into.")] = "judgearena",
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Import ratings that JudgeArena computed.

    Example: tourney import elo-ratings elo_ratings.json
    """
    writer = Writer(output_format, as_json)
    with ledger_to_write(ledger_path(ledger, config)) as opened:
        imported = import_ratings(opened, options.or_standard_input(file), name=set_name(name))
    writer.write(imported_ratings_table({name: imported}))


def import_hydra_weights(
    weights: Annotated[Path, typer.Argument(help="The folder of the base model.")],
    out: Annotated[Path, typer.Argument(help="The new folder to write.")],
    security: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the security shards.")
    ] = None,
    robustness: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of the robustness shards, at every step."),
    ] = None,
    uncertainty: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the uncertainty head.")
    ] = None,
    heads: Annotated[int, typer.Option(min=1, help="The number of shards in each set.")] = 9,
    heads_depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of layers of a head. Default: as the security shards' manifest.json"
            f" says, else {DEFAULT_DEPTH}.",
        ),
    ] = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Convert the shards of a Hydra to PEFT adapters.

    Example: tourney import hydra-weights models/olmo2 models/hydra --security weights/prod
    """
    writer = Writer(output_format, as_json)
    sets = ShardSets(security, robustness, uncertainty)
    imported = import_hydra(
        weights, out, sets, make_shard_reader(), n_heads=heads, heads_depth=heads_depth
    )
    writer.write(tables.imported_table(out, imported))
    say(f"{counted(len(imported), 'adapter')} in {out}")


def merge(
    other: Annotated[
        Path,
        typer.Argument(
            help="The other ledger, or a file that `tourney export events` wrote; - is standard"
            " input."
        ),
    ],
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Merge another ledger into this one. Repeating it is harmless.

    Exported events are merged likewise.

    Example: tourney merge host2.db
    """
    writer = Writer(output_format, as_json)
    other, path = options.or_standard_input(other), ledger_path(ledger, config)
    if _is_export(other):
        _tell(_merge_export(other, path), writer)
        return
    with Ledger.read_only(other) as theirs, ledger_to_write(path) as ours:
        require_sound(theirs)
        taken = merge_ledger(ours, theirs.rows())
    _tell(taken, writer)


def _is_export(file: Path) -> bool:
    """Tell exported events from a ledger; a pipe has no ledger."""
    if not file.is_file():
        return file.exists() and not file.is_dir()
    with suppress(OSError), file.open("rb") as content:
        return content.read(1) in {b"{", b""}
    return False


def _format_named(name: str) -> BattleFormat:
    """Return the format that --from names."""
    if name in FORMATS:
        return FORMATS[name]
    close = get_close_matches(name, FORMATS, n=2, cutoff=0.5)
    remedy = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(FORMATS)}"
    raise ConfigurationError([f"--from {name!r} is not a format of battles; {remedy}"])


def _tell(taken: MergeCounts, writer: Writer) -> None:
    writer.write(conflicts_table(taken))
    if taken.conflicts:
        against = counted(len(taken.conflicts), "event contradicts", "events contradict")
        raise DoneWithGaps(f"{against} this ledger, whose own were kept")
