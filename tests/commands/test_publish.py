"""Publishing: the claim on the ledger first, then the files beside it, once."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import AuditDisagrees
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import no_progress
from commands.runs.run import PublishedRun, publish
from ledger.errors import CannotWrite, FolderTaken, StaleVersion
from ledger.events.ratings import ArtifactDigest, EloParameters, Publication, RatingsPublished
from ledger.identity import PromptId, StreamId, digest_of_bytes
from ledger.store import Ledger
from projections.tournament.progress import AskingRules
from tests.builders import NOON, STREAM, opened, prompt
from tests.commands.builders import JUDGE, P1, P2, answered, preferring_tuned, terms


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants and two prompts, judged on the first of them."""
    answered(recorder, opened(prompts=[prompt("p1"), prompt("p2")]))
    judge(recorder, P1)
    return recorder


def judge(recorder: Recorder, prompt_id: PromptId) -> None:
    """Judge one prompt."""
    task = JudgeTask(JUDGE, [prompt_id], AskingRules(retries=1))
    judge_open(recorder, task, preferring_tuned, on_progress=no_progress)


def published(recorder: Recorder, runs: Path, **fields: object) -> PublishedRun:
    """Publish at noon."""
    return publish(recorder, terms(**fields), runs=runs, now=NOON)


def claims(ledger: Ledger) -> list[RatingsPublished]:
    """Return what was claimed."""
    events = (recorded.event for recorded in ledger.read())
    return [event for event in events if isinstance(event, RatingsPublished)]


def test_a_run_is_named_by_its_mode_and_time(recorder: Recorder, tmp_path: Path) -> None:
    """Folders sort by time, and say what they hold."""
    run = published(recorder, tmp_path, mode="pilot")

    assert run.folder == tmp_path / "pilot_20260427_120000"
    assert run.is_new


def test_the_claim_names_every_file_but_the_report_and_its_bytes(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """It is what a replay is held to."""
    run = published(recorder, tmp_path)

    (claim,) = claims(ledger)
    files = {a.path: digest_of_bytes((run.folder / a.path).read_bytes()) for a in claim.artifacts}
    assert files == {artifact.path: artifact.digest for artifact in claim.artifacts}
    there = {str(at.relative_to(run.folder)) for at in run.folder.rglob("*") if at.is_file()}
    assert there == files.keys() | {"report.html"}
    assert len(files) == 8


def test_the_claim_names_the_history_that_it_is_of(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """Position and chain say exactly what was known."""
    head = ledger.head

    published(recorder, tmp_path)

    (claim,) = claims(ledger)
    assert (claim.publication.as_of, claim.publication.head) == (head.position, head.chain)


def test_publishing_again_unchanged_gives_the_same_folder(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """A second run on the same events has nothing new to say."""
    first = published(recorder, tmp_path)
    head = ledger.head

    later = NOON + timedelta(hours=1)
    again = publish(Recorder(ledger, STREAM), terms(), runs=tmp_path, now=later)

    assert (again.folder, again.is_new) == (first.folder, False)
    assert ledger.head == head


def test_other_terms_are_another_run_even_in_the_same_second(
    recorder: Recorder, tmp_path: Path
) -> None:
    """Two runs never share a folder."""
    runs = [
        published(recorder, tmp_path, elo=EloParameters(permutations=n, k_sweep=()))
        for n in (1, 2, 3)
    ]

    assert [run.folder.name for run in runs] == [
        "headline_20260427_120000",
        "headline_20260427_120000_2",
        "headline_20260427_120000_3",
    ]


def test_another_event_makes_another_run(recorder: Recorder, tmp_path: Path) -> None:
    """The claim of the first stays as it was; the second is of a longer history."""
    first = published(recorder, tmp_path)
    judge(recorder, P2)

    second = published(recorder, tmp_path)

    accounts = [run.results.standings for run in (first, second)]
    assert [a.account.decided for each in accounts for a in each.values()] == [1, 2]
    assert first.folder != second.folder


@pytest.mark.parametrize("is_reserved", [True, False])
def test_a_run_killed_before_its_files_gets_them_from_the_next(
    ledger: Ledger, recorder: Recorder, tmp_path: Path, *, is_reserved: bool
) -> None:
    """The claim is found again, and what it lacks is written, byte for byte as claimed."""
    folder = published(recorder, tmp_path).folder
    shutil.rmtree(folder)
    if is_reserved:
        folder.mkdir()

    run = published(Recorder(ledger, STREAM), tmp_path)

    (claim,) = claims(ledger)
    assert (run.folder, run.is_new) == (folder, False)
    for artifact in claim.artifacts:
        assert digest_of_bytes((run.folder / artifact.path).read_bytes()) == artifact.digest
    assert (run.folder / "report.html").is_file()


@pytest.mark.parametrize("is_link", [False, True])
def test_what_cannot_be_written_is_not_claimed(
    ledger: Ledger, recorder: Recorder, tmp_path: Path, *, is_link: bool
) -> None:
    """The error says that nothing was recorded, and a claim without files helps nobody."""
    if is_link:
        (tmp_path / "runs").symlink_to(tmp_path / "a disk that is not there")
    else:
        (tmp_path / "runs").touch()

    with pytest.raises(CannotWrite):
        published(recorder, tmp_path / "runs")

    assert claims(ledger) == []


def test_a_folder_of_another_tournament_is_passed_over(recorder: Recorder, tmp_path: Path) -> None:
    """Two ledgers may lie in one folder, and publish in one second."""
    theirs = tmp_path / "headline_20260427_120000"
    theirs.mkdir()

    run = published(recorder, tmp_path)

    assert run.folder == tmp_path / "headline_20260427_120000_2"
    assert (run.folder / "manifest.json").is_file()
    assert not any(theirs.iterdir())


def test_two_tournaments_that_publish_at_once_have_a_folder_each(
    recorder: Recorder, tmp_path: Path
) -> None:
    """A name is taken before the ratings are computed, which may take a while."""
    others: list[Recorder] = []
    runs: list[PublishedRun] = []

    def noon_while_another_publishes() -> datetime:
        while others:
            runs.append(published(others.pop(), tmp_path))
        return NOON

    with Ledger.in_memory(now=noon_while_another_publishes) as elsewhere:
        mine = Recorder(elsewhere, STREAM)
        answered(mine, opened(prompts=[prompt("p1"), prompt("p2")]))
        others.append(recorder)
        runs.append(published(mine, tmp_path))

    assert [run.folder.name for run in runs] == [
        "headline_20260427_120000_2",
        "headline_20260427_120000",
    ]
    assert all((run.folder / "manifest.json").is_file() for run in runs)


def test_a_claim_whose_folder_is_anothers_is_told(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """What lies there would pass for what this tournament published."""
    folder = published(recorder, tmp_path).folder
    (folder / "manifest.json").write_bytes(b"{}")

    with pytest.raises(FolderTaken, match="headline_20260427_120000 exists already"):
        published(Recorder(ledger, STREAM), tmp_path)


def test_a_folder_that_lost_its_manifest_is_left_as_it_is(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """What its user took out or changed there is for `tourney replay` to tell."""
    folder = published(recorder, tmp_path).folder
    (folder / "manifest.json").unlink()

    run = published(Recorder(ledger, STREAM), tmp_path)

    assert (run.folder, run.is_new) == (folder, False)
    assert not (folder / "manifest.json").exists()


def test_a_run_that_fails_before_its_claim_leaves_no_folder(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """Nobody could tell what it was to hold."""
    judge(Recorder(ledger, STREAM), P2)

    with pytest.raises(StaleVersion):
        published(recorder, tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_tournament_of_which_nothing_is_known_cannot_be_published(tmp_path: Path) -> None:
    """There is no history to name."""
    with Ledger.in_memory() as empty:
        nobody = Recorder(empty, STREAM)

        with pytest.raises(ValueError, match="tournament 'main' was never opened"):
            published(nobody, tmp_path)


def test_another_tournament_in_the_ledger_publishes_nothing_anew(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """Its openings and outcomes change no rating of this one."""
    first = published(recorder, tmp_path)
    ledger.append(StreamId("other"), opened(prompts=[prompt("elsewhere")]))

    again = published(Recorder(ledger, STREAM), tmp_path)

    assert not again.is_new
    assert again.folder == first.folder


def test_files_that_would_contradict_an_old_claim_are_not_written(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """A later tourney may fold to other bytes; they must not pass for what was published."""
    newest = recorder.state.newest
    assert newest is not None
    publication = Publication(
        run="old", terms=terms(), started_at=NOON, as_of=newest.position, head=newest.chain
    )
    other = ArtifactDigest(path="manifest.json", digest=digest_of_bytes(b"other"))
    ledger.append(STREAM, [RatingsPublished(publication=publication, artifacts=(other,))])

    with pytest.raises(AuditDisagrees, match="run old gives other files today than were published"):
        published(Recorder(ledger, STREAM), tmp_path)

    assert not list(tmp_path.iterdir())
