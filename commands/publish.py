"""Use case: claim a run's ratings on the ledger and lay its artifacts beside it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from commands.errors import NothingRecorded
from commands.recorder import Recorder
from commands.run_folder import write_files
from commands.tournament import PublishRatings
from ledger.events.ratings import (
    ArtifactDigest,
    EloParameters,
    Mode,
    Publication,
    RatingsPublished,
)
from ledger.identity import JudgeId, PromptId, digest_of_bytes
from projections.artifacts.files import files_of
from projections.artifacts.results import Results, results_of
from projections.reconcile import DEFAULT_POLICY
from projections.tournament import Tournament


class Run(NamedTuple):
    """A published run: its results, and whether it was published just now."""

    folder: Path
    results: Results
    is_new: bool


def publish(
    recorder: Recorder,
    *,
    mode: Mode,
    judge: JudgeId,
    elo: EloParameters,
    prompts: Sequence[PromptId],
    runs: Path,
    now: datetime,
) -> Run:
    """Publish what is known now, unless just that was published already.

    The claim is recorded first and the files follow, whole: a run killed between the two finds
    its claim again and writes the files that it lacks.
    """
    wanted = _publication(recorder.state, mode, judge, elo, prompts, now)
    published = _published(recorder.state, wanted)
    publication = wanted if published is None else published.publication
    results = results_of(recorder.state, publication)
    files = files_of(results)
    if published is None:
        recorder.record(PublishRatings(_claim(publication, files)))
    folder = runs / publication.run
    if not folder.exists():
        write_files(folder, files)
    return Run(folder, results, is_new=published is None)


def _publication(
    state: Tournament,
    mode: Mode,
    judge: JudgeId,
    elo: EloParameters,
    prompts: Sequence[PromptId],
    now: datetime,
) -> Publication:
    if state.newest is None:
        raise NothingRecorded(state.stream)
    return Publication(
        run=_unused_name(state, f"{mode}_{now:%Y%m%d_%H%M%S}"),
        mode=mode,
        judge=judge,
        policy=DEFAULT_POLICY,
        elo=elo,
        entrants=tuple(entrant.entrant_id for entrant in state.roster),
        prompts=tuple(prompts),
        started_at=now,
        as_of=state.newest.position,
        head=state.newest.chain,
    )


def _unused_name(state: Tournament, name: str) -> str:
    taken = {ratings.publication.run for ratings in state.publications}
    n = 1
    while (candidate := name if n == 1 else f"{name}_{n}") in taken:
        n += 1
    return candidate


def _published(state: Tournament, wanted: Publication) -> RatingsPublished | None:
    """Return an earlier publication of the very same, whatever its name and time."""
    place = {"run": wanted.run, "started_at": wanted.started_at}
    for ratings in state.publications:
        if ratings.publication.model_copy(update=place) == wanted:
            return ratings
    return None


def _claim(publication: Publication, files: Mapping[str, bytes]) -> RatingsPublished:
    return RatingsPublished(
        publication=publication,
        artifacts=tuple(
            ArtifactDigest(path=path, digest=digest_of_bytes(content))
            for path, content in files.items()
        ),
    )
