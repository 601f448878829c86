"""A whole tournament, from the opening to its ratings: claimed on the ledger, then written."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import AuditDisagrees, ConfigurationError, NoCredentials, ProviderError
from commands.judging.judge import JudgeTask, judge_open
from commands.judging.panel import panel_of
from commands.judging.plan import JudgingOptions
from commands.ports import Console, Generator, LocalJudge, no_progress
from commands.runs.run import PublishedRun, RunSummary, publish, run_tournament
from commands.runs.workspace import Workspace, selected_prompts
from commands.settings.schema import Settings
from commands.settings.servers import Reach, Server
from ledger.errors import CannotWrite, FolderTaken, StaleVersion
from ledger.events.ratings import ArtifactDigest, EloParameters, Publication, RatingsPublished
from ledger.identity import PromptId, StreamId, digest_of_bytes
from ledger.store import Ledger
from projections.tournament.bank import recorded_pilot
from tests.support.builders.commands import (
    JUDGE,
    P1,
    P2,
    PowerCut,
    echoing,
    entrant_section,
    open_tournament,
    preferring_tuned,
    record_answers,
    settings,
    terms,
    types_of,
)
from tests.support.builders.events import NOON, STREAM, opened, prompt
from tests.support.scripted import ScriptedBackends

PROMPTS = [prompt("p1"), prompt("p2")]
OPENED = opened(prompts=PROMPTS)


def run(
    recorder: Recorder,
    folder: Path,
    *,
    generator: Generator | None = None,
    judge: LocalJudge | None = None,
    chosen: Settings | None = None,
    reach: Reach = lambda _: None,
) -> RunSummary:
    """Run two entrants on two prompts."""
    chosen = chosen or settings()
    judges = () if chosen.judge.provider == "reference" else panel_of(chosen, folder)
    opening = open_tournament(opened(prompts=PROMPTS, judges=judges) if judges else OPENED)
    place = Workspace(chosen, folder, folder / "tournament.db", opening)
    backends = ScriptedBackends(generator or echoing(), judge or preferring_tuned())
    console = Console(print, None, no_progress)
    how = JudgingOptions()
    return run_tournament(recorder, place, how, backends, console, now=NOON, reach=reach)


def test_a_tournament_is_told_by_its_events(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """The golden list: what happens, in what order, and nothing twice."""
    run(recorder, tmp_path)

    assert types_of(ledger) == [
        "TournamentOpened",
        "PromptRegistered",
        "PromptRegistered",
        "RubricRegistered",
        "EntrantRegistered",
        "EntrantRegistered",
        "JudgeRegistered",
        "ResponseGenerated",
        "ResponseGenerated",
        "ResponseGenerated",
        "ResponseGenerated",
        "JudgeQuerySubmitted",
        "JudgeQuerySubmitted",
        "JudgeQuerySubmitted",
        "JudgeQuerySubmitted",
        "VerdictReceived",
        "VerdictReceived",
        "VerdictReceived",
        "VerdictReceived",
        "PairReconciled",
        "PairReconciled",
        "RatingsPublished",
    ]


def test_a_run_cut_off_anywhere_ends_like_one_that_was_not(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """Events come out the same, in the same order, but for the time."""
    with Ledger.in_memory() as undisturbed:
        run(Recorder(undisturbed, STREAM), tmp_path / "undisturbed")
        expected = [row.event_id[6:] for row in undisturbed.rows()]
    with pytest.raises(PowerCut):
        run(recorder, tmp_path, generator=echoing(stops_after=2))

    run(Recorder(ledger, STREAM), tmp_path)

    assert [row.event_id[6:] for row in ledger.rows()] == expected


def test_the_pilot_is_its_share_of_the_bank_in_bank_order() -> None:
    """It stands for the whole, unless it is shared out by hand; a headline takes all."""
    prompts = [prompt(f"r{n}") for n in range(6)] + [
        prompt(f"v{n}", source="vignette") for n in range(3)
    ]

    chosen = selected_prompts(prompts, settings(pilot={"size": 3}), "pilot")

    assert [prompt_id[0] for prompt_id in chosen] == ["r", "r", "v"]
    assert chosen == selected_prompts(prompts, settings(pilot={"size": 3}), "pilot")
    by_hand = settings(pilot={"strata": {"vignette": 2, "recall": 1}})
    assert [each[0] for each in selected_prompts(prompts, by_hand, "pilot")] == ["r", "v", "v"]
    every = tuple(each.prompt_id for each in prompts)
    assert selected_prompts(prompts, settings(), "headline") == every


def test_a_pilot_larger_than_the_bank_is_refused() -> None:
    """Drawing a prompt twice would count it twice."""
    with pytest.raises(ConfigurationError, match="lower \\[pilot\\] size or strata"):
        selected_prompts([prompt("p1")], settings(pilot={"size": 50}), "pilot")


@pytest.mark.parametrize(("n_prompts", "n_drawn"), [(1, 1), (12, 2), (40, 8), (60, 50)])
def test_any_bank_has_a_pilot_if_no_size_is_asked_for(n_prompts: int, n_drawn: int) -> None:
    """`run --mode pilot` is the example of its help, and failed on every bank under 50."""
    bank = [prompt(f"p{n}") for n in range(n_prompts)]

    chosen = selected_prompts(bank, settings(), "pilot")

    assert len(chosen) == n_drawn
    assert recorded_pilot(bank, settings().model_dump(mode="json")) == frozenset(chosen)


@pytest.fixture
def judged_recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants and two prompts, judged on the first of them."""
    record_answers(recorder, opened(prompts=[prompt("p1"), prompt("p2")]))
    judge(recorder, P1)
    return recorder


def judge(recorder: Recorder, prompt_id: PromptId) -> None:
    """Judge one prompt."""
    task = JudgeTask(JUDGE, [prompt_id], retries=1)
    judge_open(recorder, task, lambda *_: preferring_tuned(), on_progress=no_progress)


def published(recorder: Recorder, runs: Path, **fields: object) -> PublishedRun:
    """Publish at noon."""
    return publish(recorder, terms(**fields), runs=runs, now=NOON)


def claims(ledger: Ledger) -> list[RatingsPublished]:
    """Return what was claimed."""
    events = (recorded.event for recorded in ledger.read())
    return [event for event in events if isinstance(event, RatingsPublished)]


def test_the_claim_names_every_file_but_the_report_and_its_bytes(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """It is what a replay is held to."""
    run = published(judged_recorder, tmp_path)

    (claim,) = claims(ledger)
    files = {a.path: digest_of_bytes((run.folder / a.path).read_bytes()) for a in claim.artifacts}
    assert files == {artifact.path: artifact.digest for artifact in claim.artifacts}
    there = {str(at.relative_to(run.folder)) for at in run.folder.rglob("*") if at.is_file()}
    assert there == files.keys() | {"report.html"}
    assert len(files) == 8


def test_the_claim_names_the_history_that_it_is_of(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """Position and chain say exactly what was known."""
    head = ledger.head

    published(judged_recorder, tmp_path)

    (claim,) = claims(ledger)
    assert (claim.publication.as_of, claim.publication.head) == (head.position, head.chain)


def test_other_terms_are_another_run_even_in_the_same_second(
    judged_recorder: Recorder, tmp_path: Path
) -> None:
    """Two runs never share a folder."""
    runs = [
        published(judged_recorder, tmp_path, elo=EloParameters(permutations=n, k_sweep=()))
        for n in (1, 2, 3)
    ]

    assert [run.folder.name for run in runs] == [
        "headline_20260427_120000",
        "headline_20260427_120000_2",
        "headline_20260427_120000_3",
    ]
    shutil.rmtree(runs[1].folder)  # what is recorded is known by its name
    fourth = published(judged_recorder, tmp_path, elo=EloParameters(permutations=4, k_sweep=()))
    assert fourth.folder.name == "headline_20260427_120000_4"


@pytest.mark.parametrize("is_reserved", [True, False])
def test_a_run_killed_before_its_files_gets_them_from_the_next(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path, *, is_reserved: bool
) -> None:
    """The claim is found again, and what it lacks is written, byte for byte as claimed."""
    folder = published(judged_recorder, tmp_path).folder
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
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path, *, is_link: bool
) -> None:
    """The error says that nothing was recorded, and a claim without files helps nobody."""
    if is_link:
        (tmp_path / "runs").symlink_to(tmp_path / "a disk that is not there")
    else:
        (tmp_path / "runs").touch()

    with pytest.raises(CannotWrite):
        published(judged_recorder, tmp_path / "runs")

    assert claims(ledger) == []


def test_a_folder_of_another_tournament_is_passed_over(
    judged_recorder: Recorder, tmp_path: Path
) -> None:
    """Two ledgers may lie in one folder, and publish in one second."""
    theirs = tmp_path / "headline_20260427_120000"
    theirs.mkdir()

    run = published(judged_recorder, tmp_path)

    assert run.folder == tmp_path / "headline_20260427_120000_2"
    assert (run.folder / "manifest.json").is_file()
    assert not any(theirs.iterdir())


def test_two_tournaments_that_publish_at_once_have_a_folder_each(
    judged_recorder: Recorder, tmp_path: Path
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
        record_answers(mine, opened(prompts=[prompt("p1"), prompt("p2")]))
        others.append(judged_recorder)
        runs.append(published(mine, tmp_path))

    assert [run.folder.name for run in runs] == [
        "headline_20260427_120000_2",
        "headline_20260427_120000",
    ]
    assert all((run.folder / "manifest.json").is_file() for run in runs)


def test_a_claim_whose_folder_is_anothers_is_told(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """What lies there would pass for what this tournament published."""
    folder = published(judged_recorder, tmp_path).folder
    (folder / "manifest.json").write_bytes(b"{}")

    with pytest.raises(FolderTaken, match="headline_20260427_120000 exists already"):
        published(Recorder(ledger, STREAM), tmp_path)


def test_emptied_files_of_a_run_are_written_again(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """A power loss can leave a name without content; what the user put there stays."""
    folder = published(judged_recorder, tmp_path).folder
    whole = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    emptied = (folder / "manifest.json", folder / "report.html", *folder.glob("*/*"))
    for each in emptied:
        each.write_bytes(b"")
    (folder / "note.txt").touch()

    run = published(Recorder(ledger, STREAM), tmp_path)

    assert (run.folder, run.is_new) == (folder, False)
    assert {each: each.read_bytes() for each in whole} == whole
    assert (folder / "note.txt").read_bytes() == b""


def test_a_folder_that_lost_its_manifest_is_left_as_it_is(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """What its user took out or changed there is for `tourney replay` to tell."""
    folder = published(judged_recorder, tmp_path).folder
    (folder / "manifest.json").unlink()

    run = published(Recorder(ledger, STREAM), tmp_path)

    assert (run.folder, run.is_new) == (folder, False)
    assert not (folder / "manifest.json").exists()


def test_a_run_that_fails_before_its_claim_leaves_no_folder(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """Nobody could tell what it was to hold."""
    judge(Recorder(ledger, STREAM), P2)

    with pytest.raises(StaleVersion):
        published(judged_recorder, tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_tournament_of_which_nothing_is_known_cannot_be_published(tmp_path: Path) -> None:
    """There is no history to name."""
    with Ledger.in_memory() as empty:
        nobody = Recorder(empty, STREAM)

        with pytest.raises(ValueError, match="tournament 'main' was never opened"):
            published(nobody, tmp_path)


def test_another_tournament_in_the_ledger_publishes_nothing_anew(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path
) -> None:
    """Its openings and outcomes change no rating of this one."""
    first = published(judged_recorder, tmp_path)
    ledger.append(StreamId("other"), opened(prompts=[prompt("elsewhere")]))

    again = published(Recorder(ledger, STREAM), tmp_path)

    assert not again.is_new
    assert again.folder == first.folder


@pytest.mark.parametrize("there", [(), ("old",)])
def test_files_that_would_contradict_an_old_claim_are_not_written(
    ledger: Ledger, judged_recorder: Recorder, tmp_path: Path, there: tuple[str, ...]
) -> None:
    """A later tourney may fold to other bytes; they must not pass for what was published."""
    newest = judged_recorder.state.newest
    assert newest is not None
    publication = Publication(
        run="old", terms=terms(), started_at=NOON, as_of=newest.position, head=newest.chain
    )
    other = ArtifactDigest(path="manifest.json", digest=digest_of_bytes(b"other"))
    ledger.append(STREAM, [RatingsPublished(publication=publication, artifacts=(other,))])
    for name in there:
        (tmp_path / name).mkdir()

    with pytest.raises(
        AuditDisagrees, match="run old no longer gives the files that were published"
    ):
        published(Recorder(ledger, STREAM), tmp_path)

    assert [*tmp_path.rglob("*")] == [tmp_path / name for name in there]


AT_A_SERVER = {"provider": "endpoint", "model": "m", "base_url": "http://here/v1"}


@pytest.mark.parametrize("error", [NoCredentials("no key", "A_KEY"), ProviderError("not there")])
def test_nothing_is_generated_for_a_judge_that_cannot_be_asked(
    ledger: Ledger, recorder: Recorder, tmp_path: Path, error: Exception
) -> None:
    """Hours of generation would end in the same error."""
    reached: list[str] = []

    def fail(server: Server) -> str | None:
        reached.append(server.asked)
        raise error

    with pytest.raises(type(error)):
        run(recorder, tmp_path, chosen=settings(judge=AT_A_SERVER), reach=fail)

    assert reached == ["[judge]"]
    assert "ResponseGenerated" not in types_of(ledger)


def test_a_judge_is_looked_for_though_all_responses_are_there(
    recorder: Recorder, tmp_path: Path
) -> None:
    """As where a file has the answers: a misspelt model is told before it is asked."""
    run(recorder, tmp_path)
    reached: list[str] = []

    def fail(server: Server) -> str | None:
        reached.append(server.asked)
        raise ProviderError("not there")

    with pytest.raises(ProviderError, match="not there"):
        run(recorder, tmp_path, chosen=settings(judge=AT_A_SERVER), reach=fail)

    assert reached == ["[judge]"]


def test_only_servers_that_will_be_asked_are_looked_for(recorder: Recorder, tmp_path: Path) -> None:
    """An entrant's server matters as long as a response of it is missing."""
    reached: list[str] = []

    def look(server: Server) -> str | None:
        reached.append(f"{server.asked} {server.base_url}")
        return None

    far = {"id": "tuned", "loader": "endpoint", "model": "n", "base_url": "http://far/v1"}
    chosen = settings(entrants=[entrant_section("base"), far])

    run(recorder, tmp_path, chosen=chosen, reach=look)
    run(recorder, tmp_path, chosen=chosen, reach=look)

    assert reached == ["[[entrants]] 'tuned' http://far/v1"]


def test_all_missing_keys_are_named_before_anything_is_sent(
    ledger: Ledger, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets one key a run starts it as often as there are makers."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "XAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    models = {"base": "google/gemini", "tuned": "xai/grok"}
    entrants = [{"id": name, "model": model} for name, model in models.items()]
    chosen = settings(entrants=entrants, judge={"model": "anthropic/claude-opus-5-5"})
    reached: list[Server] = []

    with pytest.raises(NoCredentials, match="need API keys") as missing:
        run(recorder, tmp_path, chosen=chosen, reach=reached.append)

    assert str(missing.value).startswith(
        "judge 'claude-opus-5-5', [[entrants]] 'base', [[entrants]] 'tuned' need API keys, and none"
        " is set; export ANTHROPIC_API_KEY=... GEMINI_API_KEY=... XAI_API_KEY=..., or "
    )
    assert reached == []
    assert "ResponseGenerated" not in types_of(ledger)
