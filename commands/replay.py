"""Use case: fold again from the first event and compare each run byte for byte."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from commands.errors import NotFound
from commands.run_folder import write_files
from ledger.events.ratings import RatingsPublished
from ledger.identity import StreamId, digest_of_bytes
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.artifacts.files import files_of
from projections.artifacts.results import results_of
from projections.tournament import Tournament, evolve


class Rebuilt(NamedTuple):
    """A published run and its files as they follow from the ledger today."""

    ratings: RatingsPublished
    files: Mapping[str, bytes]


class Difference(NamedTuple):
    """A file of a run that is not what the ledger says."""

    run: str
    path: str
    why: str


class Replayed(NamedTuple):
    """The runs that were rebuilt, and every difference found."""

    runs: tuple[str, ...]
    differences: tuple[Difference, ...]


def replay(
    ledger: Ledger,
    stream: StreamId,
    *,
    until: int | None = None,
    against: Path | None = None,
    out: Path | None = None,
) -> Replayed:
    """Rebuild published runs, and compare them with what was claimed.

    Args:
        ledger: Where the events are.
        stream: The tournament.
        until: The last position to read.
        against: A run's folder, to compare byte for byte; only that run is rebuilt.
        out: A folder to write the rebuilt runs into.

    Raises:
        NotFound: No run of that folder's name was published.
    """
    runs: list[str] = []
    differences: list[Difference] = []
    for rebuilt in _rebuilt_runs(ledger, stream, until):
        name = rebuilt.ratings.publication.run
        if against is not None and name != against.resolve().name:
            continue
        runs.append(name)
        differences += _differences_from_claim(rebuilt)
        if against is not None:
            differences += _differences_from_folder(rebuilt, against)
        if out is not None:
            write_files(out / name, rebuilt.files)
    if against is not None and not runs:
        raise NotFound(f"{against}: no run of that name was published in {ledger.path}")
    return Replayed(tuple(runs), tuple(differences))


def _rebuilt_runs(ledger: Ledger, stream: StreamId, until: int | None) -> Iterator[Rebuilt]:
    """Fold from the first event and yield each run that was published on the way."""
    state = Tournament(stream)
    states: dict[int, Tournament] = {}
    publications = _publications(ledger.read(until=until), stream)
    wanted = {ratings.publication.as_of for ratings in publications}
    for recorded in ledger.read(until=max(wanted, default=0)):
        state = evolve(state, recorded)
        if recorded.position in wanted:
            states[recorded.position] = state
    for ratings in publications:
        known = states[ratings.publication.as_of]
        yield Rebuilt(ratings, files_of(results_of(known, ratings.publication)))


def _differences_from_claim(rebuilt: Rebuilt) -> Iterator[Difference]:
    """Yield what does not follow any more from the events as it was published."""
    run = rebuilt.ratings.publication.run
    for artifact in rebuilt.ratings.artifacts:
        content = rebuilt.files.get(artifact.path)
        if content is None:
            yield Difference(run, artifact.path, "was published and is not made any more")
        elif digest_of_bytes(content) != artifact.digest:
            yield Difference(run, artifact.path, "folds to other bytes than were published")


def _differences_from_folder(rebuilt: Rebuilt, folder: Path) -> Iterator[Difference]:
    """Yield the files of a folder that are not what the ledger says, missing ones included."""
    run = rebuilt.ratings.publication.run
    for path, content in rebuilt.files.items():
        file = folder / path
        if not file.is_file():
            yield Difference(run, path, "is missing")
        elif file.read_bytes() != content:
            yield Difference(run, path, f"differs from byte {_first_change(file, content)} on")


def _first_change(file: Path, content: bytes) -> int:
    """Return the offset, from 0, of the first byte that is not the same."""
    found = file.read_bytes()
    pairs = zip(found, content, strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    return min(len(found), len(content)) if same is None else same


def _publications(events: Iterable[Recorded], stream: StreamId) -> tuple[RatingsPublished, ...]:
    return tuple(
        recorded.event
        for recorded in events
        if recorded.stream == stream and isinstance(recorded.event, RatingsPublished)
    )
