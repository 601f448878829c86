"""Use case: claim a run's ratings on the ledger and lay its artifacts beside it."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from commands.command import PublishRatings
from commands.errors import AuditDisagrees
from commands.recorder import Recorder
from commands.run_folder import write_files
from ledger.events.ratings import ArtifactDigest, Publication, RatingsPublished, Terms
from ledger.identity import digest_of_bytes
from ledger.recorded import Recorded
from projections.artifacts.files import files_of
from projections.artifacts.results import Results, results_of
from projections.tournament import Tournament


class Run(NamedTuple):
    """A published run: its results, and whether it was published just now."""

    folder: Path
    results: Results
    is_new: bool


def publish(recorder: Recorder, terms: Terms, *, runs: Path, now: datetime) -> Run:
    """Publish what is known now, unless just that was published already.

    The claim is recorded first and the files follow, whole: a run killed between the two finds
    its claim again and writes the files that it lacks.
    """
    state = recorder.state
    published = _published(state, terms)
    publication = published.publication if published else _publication(state, terms, now)
    results = results_of(state, publication)
    files = files_of(results)
    claim = _claim(publication, files)
    if published is None:
        recorder.record(PublishRatings(claim))
    elif claim != published:
        raise AuditDisagrees(
            f"run {publication.run} was published and folds to other bytes today;"
            " see `tourney replay`"
        )
    folder = runs / publication.run
    if not folder.exists():
        write_files(folder, files)
    return Run(folder, results, is_new=published is None)


def _published(state: Tournament, terms: Terms) -> RatingsPublished | None:
    """Return an earlier publication of the same terms on the same events."""
    for ratings in state.publications:
        publication = ratings.publication
        if publication.terms == terms and publication.head == _newest(state).chain:
            return ratings
    return None


def _publication(state: Tournament, terms: Terms, now: datetime) -> Publication:
    newest = _newest(state)
    return Publication(
        run=_unused_name(state, f"{terms.mode}_{now:%Y%m%d_%H%M%S}"),
        terms=terms,
        started_at=now,
        as_of=newest.position,
        head=newest.chain,
    )


def _newest(state: Tournament) -> Recorded:
    if state.newest is None:
        raise ValueError(f"tournament {state.stream!r} was not opened, there is nothing to rate")
    return state.newest


def _unused_name(state: Tournament, name: str) -> str:
    taken = {ratings.publication.run for ratings in state.publications}
    n = 1
    while (candidate := name if n == 1 else f"{name}_{n}") in taken:
        n += 1
    return candidate


def _claim(publication: Publication, files: Mapping[str, bytes]) -> RatingsPublished:
    return RatingsPublished(
        publication=publication,
        artifacts=tuple(
            ArtifactDigest(path=path, digest=digest_of_bytes(content))
            for path, content in files.items()
        ),
    )
