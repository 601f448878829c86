"""`tourney import` and `merge`: read responses, battles, ratings, weights or events of others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer
from msgspec.structs import asdict

from commands.auditing.soundness import require_sound
from commands.backends.wiring import make_shard_reader
from commands.cli.project.status import best_first
from commands.cli.shared import options
from commands.cli.shared.output import say
from commands.cli.shared.reading import set_name
from commands.cli.shared.selection import OF_LEDGER, WRITTEN, Selected, selecting
from commands.cli.shared.workspace import ledger_to_write, workspace
from commands.cli.tables.table import Table, table_of
from commands.entrants.hydra_import import ImportedAdapter, ShardSets, import_hydra
from commands.errors import ConfigurationError, DoneWithGaps, counted, shortened
from commands.importing.battles import (
    BattleFile,
    BattleImport,
    bad_rows,
    import_battles,
    import_ratings,
    unrated_notes,
)
from commands.importing.formats import plain
from commands.importing.formats.catalogue import FORMATS, format_of
from commands.importing.formats.files import columns_of, readable_again, records_of
from commands.importing.formats.rows import BattleFormat
from commands.importing.merge import MergeCounts, merge_ledger
from commands.importing.responses import (
    FoundResponse,
    ImportedResponses,
    bad_lines,
    import_responses,
)
from ledger.errors import BrokenExport
from ledger.events.imports import RatingsImported
from ledger.exchange import read_export
from ledger.store import Ledger
from projections.results.columns import KEPT, Column, Shown
from projections.results.outcomes import ImportedRatingRow

_LONGEST_HEADER: Final = 1_000  # bytes
_CLAIM: Final = (
    "tourney cannot check that these responses are by the configured entrants to the configured"
    " prompts: the files hold only ids; each response records its file's digest as imported_from"
)


@selecting(*OF_LEDGER, *WRITTEN)
def responses(
    ctx: Selected,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Cache files: responses_ENTRANT.jsonl.")
    ],
    skip_bad: options.SkipBad = False,
) -> None:
    """Import responses that tap's scripts cached, to judge them without generating again.

    The files hold only the ids of entrants and prompts, so tourney cannot check that the texts come
    from the configured entrants and prompts. Each response records its file's digest as
    imported_from. Responses already on record are kept.

    Example: tourney import responses caches/responses_*.jsonl
    """
    place = workspace(ctx.selection.config, ctx.selection.ledger)
    files = [*map(options.or_standard_input, files)]
    with place.recorder(say) as recorder:
        imported = import_responses(recorder, place.opening, files, skip_bad=skip_bad)
    for line in bad_lines(imported.bad):
        say(line)
    used = {response.file for response in chain(imported.new, imported.known)}
    used |= {file for file, _ in imported.bad}
    for file in dict.fromkeys(files):
        if file in imported.empty:
            say(f"nothing of {file} was imported: it is empty")
        elif file not in used:
            say(f"nothing of {file} was imported: another file has the same responses")
    if imported.new:
        say(_CLAIM)
    ctx.selection.write(imported_responses_table(imported))


def _columns(says: Mapping[str, str]) -> str:
    """List columns, one a line; the backspace stops click from wrapping them."""
    return "\n".join(("\b", *(f"  {name}: {meaning}" for name, meaning in says.items())))


_PLAIN_TABLE: Final = (
    f"A plain table has one row per battle and these columns:\n\n{_columns(plain.NEEDED)}"
    f"\n\nThese columns are optional:\n\n{_columns(plain.OPTIONAL)}"
)


@selecting(*OF_LEDGER, *WRITTEN)
def battles(
    ctx: Selected,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="A .csv, .json, .jsonl or .parquet file; - is standard input."
        ),
    ],
    layout: Annotated[
        str | None,
        typer.Option(
            autocompletion=lambda: [*FORMATS],
            help=f"The layout of the files: {', '.join(FORMATS)}. Default: the one that has their"
            " columns.",
        ),
    ] = None,
    name: Annotated[
        str | None, options.of_set("Name of the set to import into. Default: the format's name.")
    ] = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Import battles of other programs. Battles that the set already holds are skipped.

    Example: tourney import battles train.csv
    """
    of = None if layout is None else _format_named(layout)
    with ExitStack() as copies:
        chosen = [
            _battle_file(file, of, name, copies.enter_context(readable_again(file)))
            for file in map(options.or_standard_input, files)
        ]
        opened = copies.enter_context(ledger_to_write(ctx.selection.path))
        taken = import_battles(opened, chosen, skip_bad=skip_bad)
    for file in taken:
        for row in bad_rows(file):
            say(row)
    ctx.selection.write(battles_table(taken))


vars(battles)["epilog"] = _PLAIN_TABLE  # below its options in help


def _battle_file(
    file: Path, of: BattleFormat | None, name: str | None, content: Path
) -> BattleFile:
    """Return a file of battles; a pipe has no name that could tell its set."""
    of = of or format_of(columns_of(file, content=content))
    if name is None and of.set_by_file is not None and not file.suffix:
        raise ConfigurationError([f"{file} does not say which set these battles join; use --name"])
    into = set_name(of.set_of(file) if name is None else name)
    records = records_of(file, of, content=content)
    return BattleFile(file, records, of, into, content)


@selecting(*OF_LEDGER, *WRITTEN)
def elo_ratings(
    ctx: Selected,
    file: Annotated[Path, typer.Argument(help="An elo_ratings.json as JudgeArena writes it.")],
    name: Annotated[str, options.of_set("Name of the set to import into.")] = "judgearena",
) -> None:
    """Import ratings that JudgeArena computed.

    Example: tourney import elo-ratings elo_ratings.json
    """
    with ledger_to_write(ctx.selection.path) as opened:
        imported = import_ratings(opened, options.or_standard_input(file), name=set_name(name))
    ctx.selection.write(imported_ratings_table(name, imported))


@selecting(*WRITTEN)
def hydra_weights(
    ctx: Selected,
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
) -> None:
    """Convert the shards of a Hydra to PEFT adapters.

    Example: tourney import hydra-weights models/olmo2 models/hydra --security weights/prod
    """
    sets = ShardSets(security, robustness, uncertainty)
    imported = import_hydra(weights, out, sets, make_shard_reader())
    ctx.selection.write(imported_table(out, imported))
    say(f"{counted(len(imported), 'adapter')} in {out}")


@selecting(*OF_LEDGER, *WRITTEN)
def merge(
    ctx: Selected,
    other: Annotated[
        Path,
        typer.Argument(
            help="The other ledger, or a file that `tourney export events` wrote; - is standard"
            " input."
        ),
    ],
) -> None:
    """Merge another ledger into this one. Repeating it is harmless.

    Exported events are merged likewise.

    Example: tourney merge host2.db
    """
    other = options.or_standard_input(other)
    merge_file = _merge_export if _is_export(other) else _merge_other
    taken = merge_file(other, ctx.selection.path)
    ctx.selection.write(conflicts_table(taken))
    if taken.conflicts:
        against = counted(len(taken.conflicts), "event contradicts", "events contradict")
        raise DoneWithGaps(f"{against} this ledger, whose own were kept")


def _merge_other(file: Path, into: Path) -> MergeCounts:
    with Ledger.read_only(file) as theirs, ledger_to_write(into) as ours:
        require_sound(theirs)
        return merge_ledger(ours, theirs.rows())


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


def _is_export(file: Path) -> bool:
    """Tell exported events from a ledger; a pipe has no ledger."""
    if not file.is_file():
        return file.exists() and not file.is_dir()
    with suppress(OSError), file.open("rb") as content:
        return content.read(1) in {b"{", b""}
    return False


def _format_named(name: str) -> BattleFormat:
    """Return the format that --layout names."""
    if name in FORMATS:
        return FORMATS[name]
    close = get_close_matches(name, FORMATS, n=2, cutoff=0.5)
    remedy = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(FORMATS)}"
    raise ConfigurationError([f"--layout {name!r} is not a layout of battles; {remedy}"])


class ImportedFileRow(NamedTuple):
    """How many battles of a file were imported."""

    file: Shown[str]
    name: Annotated[str, Column("Set")]
    format: Shown[str]
    battles: Shown[int]
    entrants: Shown[int]
    ties: Shown[int]
    no_verdict: Shown[int]
    skipped: Shown[int]
    judges: Shown[str | None]


def battles_table(files: Sequence[BattleImport]) -> Table:
    """Return a row that counts each file's battles; one without a verdict is not a tie."""
    n_known = sum(taken.n_known for taken in files)
    n_in_set = {taken.file.name: taken.n_in_set for taken in files}
    notes = [f"{taken.file.path}: {note}" for taken in files for note in unrated_notes(taken)]
    if n_known:
        notes.append(f"{counted(n_known, 'battle')} were already on record and left out")
    if any(taken.n_before for taken in files):
        notes += [f"{name} now holds {counted(n, 'battle')}" for name, n in n_in_set.items()]
    alike = {" and ".join(map(ascii, names)) for taken in files for names in taken.look_alikes}
    notes += [f"{names} look alike, but count as different entrants" for names in sorted(alike)]
    return table_of(
        ImportedFileRow,
        map(_counted_row, files),
        "tourney/imported-battles@1",
        "Battles",
        notes=notes,
        facts={
            "judges": sorted(set[str]().union(*(taken.judges for taken in files))),
            "n_known": n_known,
            "n_unrated": sum(taken.unrated.total() for taken in files),
            "n_in_set": sum(n_in_set.values()),
        },
    )


def _counted_row(taken: BattleImport) -> ImportedFileRow:
    of = taken.file.of
    return ImportedFileRow(
        file=str(taken.file.path),
        name=taken.file.name,
        format=f"{of.name}@{of.mapping_version}",
        battles=taken.n_battles,
        entrants=len(taken.entrants),
        ties=taken.winners["tie"] + taken.winners["tie (bothbad)"],
        no_verdict=taken.winners["no verdict"],
        skipped=taken.n_left_out,
        judges=shortened(sorted(taken.judges)) or None,
    )


class AdapterRow(NamedTuple):
    """An adapter that was imported."""

    adapter: Shown[str]
    rank: Shown[int]
    source: Annotated[str, Column("From")]


def imported_table(out: Path, imported: Sequence[ImportedAdapter]) -> Table:
    """Return a row for each adapter, with its source."""
    return table_of(
        AdapterRow,
        (
            AdapterRow(adapter=adapter.name, rank=adapter.folder.rank, source=str(adapter.source))
            for adapter in imported
        ),
        "tourney/hydra-weights@1",
        f"Adapters in {out}",
        facts={"folder": str(out)},
    )


def imported_ratings_table(name: str, imported: RatingsImported) -> Table:
    """Return a row for each rating of a set, on its own scale, best first."""
    return table_of(
        ImportedRatingRow,
        (ImportedRatingRow(set=name, **asdict(rating)) for rating in best_first(imported)),
        "tourney/imported-ratings@1",
        "Imported ratings",
        facts={
            "sets": [{"set": name, "arena": imported.arena, "judge_model": imported.judge_model}]
        },
    )


_Place: TypeAlias = tuple[str, str | None]  # a file, and an entrant


class ImportedResponsesRow(NamedTuple):
    """How many responses of an entrant were imported from a file."""

    file: Shown[str]
    entrant: Shown[str | None]
    responses: Shown[int]
    already_there: Shown[int]
    skipped: Shown[int]


def imported_responses_table(imported: ImportedResponses) -> Table:
    """Return a row for each file and entrant; bad lines count for the file alone."""
    new, known = _counts(imported.new), _counts(imported.known)
    skipped: Counter[_Place] = Counter((str(file), None) for file, _ in imported.bad)
    return table_of(
        ImportedResponsesRow,
        (
            ImportedResponsesRow(
                *place, responses=new[place], already_there=known[place], skipped=skipped[place]
            )
            for place in sorted({*new, *known, *skipped}, key=str)
        ),
        "tourney/imported-responses@1",
        "Responses",
    )


def _counts(responses: Sequence[FoundResponse]) -> Counter[_Place]:
    return Counter(
        (str(response.file), str(response.response.entrant_id)) for response in responses
    )


class ConflictRow(NamedTuple):
    """An event of another ledger that contradicts one of this."""

    position: Annotated[int, Column("Position here")]
    their_position: Annotated[int, Column("Position there")]
    stream: Annotated[str, Column("Tournament")]
    type: Annotated[str, Column("Event", importance=KEPT)]
    key: Annotated[str, Column("Of", importance=KEPT)]


def conflicts_table(taken: MergeCounts) -> Table:
    """Return a row for each event of another ledger that contradicts this one."""
    note = (
        f"{counted(taken.n_new, 'event')} imported, {taken.n_known} already here,"
        f" {counted(len(taken.conflicts), 'conflict')},"
        f" {counted(taken.n_left, 'outcome')} left out, to be reconciled again"
    )
    if taken.n_unfounded:
        left = counted(taken.n_unfounded, "sample or completion", "samples and completions")
        note += f", {left} left out that do not match the plans here"
    return table_of(
        ConflictRow,
        (
            ConflictRow(
                position=conflict.position,
                their_position=conflict.row.position,
                stream=conflict.row.stream,
                type=conflict.row.type,
                key=" ".join(conflict.row.decode().event.natural_key),
            )
            for conflict in taken.conflicts
        ),
        "tourney/merge@1",
        "Conflicts: this ledger's events were kept",
        notes=(note,),
        facts={
            "n_new": taken.n_new,
            "n_known": taken.n_known,
            "n_left": taken.n_left,
            "n_unfounded": taken.n_unfounded,
        },
    )
