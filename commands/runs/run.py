"""Use case: run a whole tournament, from registration to published files.

Each step does only what is missing, so running it again resumes.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from commands.decisions.commands import PublishRatings
from commands.decisions.recorder import Recorder
from commands.entrants.generate import GenerationSummary, WantedResponses
from commands.entrants.session import generate_with_consent
from commands.errors import AuditDisagrees
from commands.judging import session
from commands.judging.judge import JudgingSummary
from commands.judging.panel import keys_needed, section_of
from commands.judging.plan import JudgingOptions, JudgingPlan, plan_judging, require_cap_can_be_kept
from commands.ports import Backends, Console
from commands.report.page import report_of_run
from commands.runs.doctor import require_servers
from commands.runs.workspace import Workspace, prompts_to_judge
from commands.settings.api_keys import require_keys
from commands.settings.schema import Settings
from commands.settings.servers import Reach, entrant_servers, server_of_judge
from commands.spending.pricing import price_book
from ledger.errors import FolderTaken
from ledger.events.ratings import ArtifactDigest, Publication, PublicationTerms, RatingsPublished
from ledger.identity import EntrantId, digest_of_bytes
from ledger.recorded import Recorded
from ledger.storage.files import cannot_write, write_files, write_whole
from projections.artifacts.files import files_of
from projections.artifacts.results import Results, results_of
from projections.tournament.remaining import missing_responses, responses_to_come
from projections.tournament.state import Tournament
from projections.tournament.waves import prompts_so_far
from projections.verdicts.policies import DEFAULT_POLICY


class PublishedRun(NamedTuple):
    """A published run: its folder, its results, and whether it was published just now."""

    folder: Path
    results: Results
    is_new: bool


def publish(
    recorder: Recorder, terms: PublicationTerms, *, runs: Path, now: datetime
) -> PublishedRun:
    """Publish the ratings of now, unless the same terms and events were published already.

    First an empty folder is made, so that its name is taken; then the claim is recorded; then the
    files are written, all at once. A run killed before the last step writes the files when it is
    run again.

    Raises:
        CannotWrite: The folder cannot be written.
        FolderTaken: An earlier publication's folder holds something else.
        AuditDisagrees: An earlier publication gives other files today.
    """
    state = recorder.state
    published = _published(state, terms)
    if published is not None:
        return _again(recorder, published, runs)
    with ExitStack() as unclaimed:
        folder = _reserved(state, runs, f"{terms.mode}_{now:%Y%m%d_%H%M%S}")
        unclaimed.callback(folder.rmdir)
        newest = _newest(state)
        publication = Publication(
            run=folder.name, terms=terms, started_at=now, as_of=newest.position, head=newest.chain
        )
        results = results_of(state, publication)
        files = files_of(results)
        recorder.record(PublishRatings(_claim(results.publication, files)))
        unclaimed.pop_all()
    write_files(folder, files | report_of_run(recorder.ledger, results))
    return PublishedRun(folder, results, is_new=True)


def _again(recorder: Recorder, published: RatingsPublished, runs: Path) -> PublishedRun:
    """Return an earlier publication; write its files if they were never written, or emptied.

    Files that differ since a text was redacted are left as they are.
    """
    results = results_of(recorder.state, published.publication)
    files, name = files_of(results), published.publication.run
    if _claim(published.publication, files) != published:
        if recorder.state.redactions.positions and (runs / name).is_dir():
            return PublishedRun(runs / name, results, is_new=False)
        raise AuditDisagrees(
            f"run {name} no longer gives the files that were published; see `tourney replay`"
        )
    folder = runs / name
    manifest = folder / "manifest.json"
    if not folder.is_dir() or not any(folder.iterdir()):
        write_files(folder, files | report_of_run(recorder.ledger, results))
    elif manifest.is_file() and manifest.read_bytes() not in {b"", files[manifest.name]}:
        raise FolderTaken(folder)  # another run's; `tourney replay` finds any other change
    else:
        _refill(folder, lambda: files | report_of_run(recorder.ledger, results))
    return PublishedRun(folder, results, is_new=False)


def _refill(folder: Path, make_whole: Callable[[], Mapping[str, bytes]]) -> None:
    """Write the files again that are empty: a power loss can leave a name without content."""
    emptied = [path for path in folder.rglob("*") if path.is_file() and not path.stat().st_size]
    whole = make_whole() if emptied else {}
    for path in emptied:
        if (name := path.relative_to(folder).as_posix()) in whole:
            write_whole(path, [whole[name]])


def _published(state: Tournament, terms: PublicationTerms) -> RatingsPublished | None:
    """Return an earlier publication of the same terms on the same events."""
    for ratings in state.publications:
        publication = ratings.publication
        if publication.terms == terms and publication.head == _newest(state).chain:
            return ratings
    return None


def _newest(state: Tournament) -> Recorded:
    if state.newest is None:
        raise ValueError(f"tournament {state.stream!r} was never opened: there is nothing to rate")
    return state.newest


def _reserved(state: Tournament, runs: Path, name: str) -> Path:
    """Make an empty folder under a name that is neither recorded nor on the disk."""
    taken = {ratings.publication.run for ratings in state.publications}
    names = (name if n == 1 else f"{name}_{n}" for n in count(1))
    try:
        runs.mkdir(parents=True, exist_ok=True)  # a broken link is an error here
        return next(runs / each for each in names if each not in taken and _makes(runs / each))
    except OSError as error:
        raise cannot_write(runs, error) from error


def _makes(folder: Path) -> bool:
    """Make a folder; return False if the name is taken."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _claim(publication: Publication, files: Mapping[str, bytes]) -> RatingsPublished:
    return RatingsPublished(
        publication=publication,
        artifacts=tuple(
            ArtifactDigest(path=path, digest=digest_of_bytes(content))
            for path, content in files.items()
        ),
    )


class RunSummary(NamedTuple):
    """What a run generated, judged and published."""

    generated: GenerationSummary
    judged: JudgingSummary
    run: PublishedRun


def run_tournament(
    recorder: Recorder,
    workspace: Workspace,
    options: JudgingOptions,
    backends: Backends,
    console: Console,
    *,
    now: datetime,
    reach: Reach,
) -> RunSummary:
    """Register, generate, judge, reconcile, rate and publish; nothing is done twice.

    Before anything is generated, the keys, the servers and the judge's price are checked, and the
    user agrees to the cost of all steps at once.

    Raises:
        NoCredentials: Keys are missing, and all of them are named; or one is refused.
        ConfigurationError: Nothing can be judged.
        ProviderError: A server cannot be reached, or fails.
        Refused: The user did not confirm the cost, or the cap is too low.
        WorkInFlight: Requests are in a batch that this run does not receive.
    """
    settings, folder = workspace.settings, workspace.folder
    prompts = prompts_to_judge(workspace.opening, settings, options.mode)
    recorder.record(workspace.opening)
    book = price_book(settings, folder)
    plan = partial(plan_judging, recorder, settings, folder, prompts, console=console)
    judging = plan(options=options)
    generate = partial(
        generate_with_consent,
        recorder,
        backends=backends,
        book=book,
        console=console,
        waits=options.waits,
    )
    # the answers that files have are free, and tell what judging them will cost
    recorded = [
        entrant.entrant_id for entrant in recorder.state.roster if entrant.loader == "recorded"
    ]
    wave = prompts_so_far(recorder.state, prompts)
    generated = generate(WantedResponses(wave, entrants=recorded), spending=options.spending)
    missing = missing_responses(recorder.state, prompts)
    if missing or judging.task.open_in(recorder.state):
        entrants = {cell.entrant.entrant_id for cell in missing}
        require_ready(judging, settings, entrants, reach, console)
    if missing:
        to_come = responses_to_come(recorder.state, prompts)
        options = session.agreed_to_all(recorder, judging, book.requests(to_come), book, console)
    judged, n_looks = JudgingSummary(0, 0, 0, 0), -1
    while n_looks < len(recorder.state.looks):  # once; or until a look leaves nothing to do
        n_looks = len(recorder.state.looks)
        wave = prompts_so_far(recorder.state, prompts)
        generated = generated.plus(generate(WantedResponses(wave), spending=options.spending))
        judging = plan(options=options)  # again: what was generated counts against the cap
        judged = judged.plus(session.judge_with_consent(recorder, judging, backends, console))
    session.require_none_in_flight(recorder.state, judging.task)
    terms = PublicationTerms(
        mode=options.mode,
        judge=judging.judge.judge_id,
        policy=DEFAULT_POLICY,
        elo=settings.elo.parameters,
        entrants=tuple(entrant.entrant_id for entrant in recorder.state.roster),
        prompts=prompts,
        bradley_terry=settings.bradley_terry.parameters,
    )
    run = publish(recorder, terms, runs=folder / "runs", now=now)
    return RunSummary(generated, judged, run)


def require_ready(
    plan: JudgingPlan,
    settings: Settings,
    entrants: Collection[EntrantId],
    reach: Reach,
    console: Console,
) -> None:
    """Require what judging needs, and that the servers of judge and entrants answer."""
    judge = plan.judge
    served = [*entrant_servers(entrant for entrant in settings.entrants if entrant.id in entrants)]
    of_entrants = {server.asked: server.keys for server in served}
    require_keys(keys_needed(settings, [judge]) | of_entrants)
    require_cap_can_be_kept(plan)
    of_judge = server_of_judge(section_of(settings, judge), [judge.model])
    require_servers([*filter(None, [of_judge]), *served], reach, console.tell)
