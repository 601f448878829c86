"""A whole tournament, from the opening to the ratings."""

from pathlib import Path
from typing import NamedTuple

import pytest

from commands.decisions.recorder import Recorder
from commands.entrants.generate import GenerationSummary
from commands.errors import ConfigurationError
from commands.judging.judge import JudgingSummary
from commands.judging.session import JudgingOptions
from commands.ports import BatchJudge, Console, Generator, Judge, no_progress
from commands.runs.register import selected_prompts
from commands.runs.run import RunSummary, run_tournament
from commands.runs.workspace import Workspace
from commands.settings.schema import Settings
from ledger.errors import LedgerError
from ledger.events.registration import JudgeSettings
from ledger.store import Ledger
from tests.builders import NOON, STREAM, opened, prompt
from tests.commands.builders import (
    PowerCut,
    echoing,
    open_tournament,
    preferring_tuned,
    settings,
    types_of,
)

OPENED = opened(prompts=[prompt("p1"), prompt("p2")])


class Scripted(NamedTuple):
    """Backends that answer from a script."""

    answers: Generator
    judges: Judge

    def generator(self) -> Generator:
        """Return the scripted generator."""
        return self.answers

    def judge(self, judge: JudgeSettings) -> Judge:  # noqa: ARG002  # a port's signature
        """Return the scripted judge, whoever is asked."""
        return self.judges

    def batch_judge(self, judge: JudgeSettings) -> BatchJudge:
        """Refuse: the judge of these runs answers at once."""
        raise AssertionError(judge)


def run(
    recorder: Recorder,
    folder: Path,
    *,
    generator: Generator | None = None,
    judge: Judge | None = None,
    chosen: Settings | None = None,
) -> RunSummary:
    """Run two entrants on two prompts."""
    opening = open_tournament(OPENED)
    place = Workspace(chosen or settings(), folder, folder / "tournament.db", opening)
    backends = Scripted(generator or echoing(), judge or preferring_tuned())
    console = Console(print, None, no_progress)
    return run_tournament(recorder, place, JudgingOptions(), backends, console, now=NOON)


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


def test_a_run_ends_in_ratings_and_their_files(recorder: Recorder, tmp_path: Path) -> None:
    """The entrant that won every match stands above the other, symmetrically."""
    outcome = run(recorder, tmp_path)

    standings = outcome.run.results.standings
    (rows,) = [standing.rows for standing in standings.values()]
    assert outcome.generated == GenerationSummary(n_missing=4, n_generated=4, n_failed=0)
    assert outcome.judged == JudgingSummary(n_open=4, n_verdicts=4, n_failed=0, n_reconciled=2)
    assert [row.entrant_id for row in rows] == ["tuned", "base"]
    assert sum(row.rating or 0 for row in rows) == pytest.approx(2800)
    assert (outcome.run.folder / "elo_results.json").is_file()


def test_a_second_run_does_nothing_again(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """It finds everything on the ledger, and the very same folder."""
    first = run(recorder, tmp_path)
    head = ledger.head

    second = run(Recorder(ledger, STREAM), tmp_path)

    assert ledger.head == head
    assert (second.run.folder, second.run.is_new) == (first.run.folder, False)
    assert second.generated.n_missing == second.judged.n_open == 0


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
    """It stands for the whole, so each source is there as often as in the bank."""
    prompts = [prompt(f"r{n}") for n in range(6)] + [
        prompt(f"v{n}", source="vignette") for n in range(3)
    ]

    chosen = selected_prompts(prompts, settings(pilot={"size": 3}), "pilot")

    assert [prompt_id[0] for prompt_id in chosen] == ["r", "r", "v"]
    assert chosen == selected_prompts(prompts, settings(pilot={"size": 3}), "pilot")


def test_the_pilot_may_be_shared_out_by_hand() -> None:
    """The customer's pilot takes more vignettes than their share."""
    prompts = [prompt("r1"), prompt("r2"), prompt("v1", source="vignette")]
    pilot = {"strata": {"vignette": 1, "recall": 1}}

    chosen = selected_prompts(prompts, settings(pilot=pilot), "pilot")

    assert [prompt_id[0] for prompt_id in chosen] == ["r", "v"]


def test_a_headline_run_is_over_the_whole_bank() -> None:
    """Its ratings are quoted, so nothing may be left out."""
    bank = [prompt("p1"), prompt("p2")]

    assert selected_prompts(bank, settings(), "headline") == ("p1", "p2")


def test_a_pilot_larger_than_the_bank_is_refused() -> None:
    """Drawing a prompt twice would count it twice."""
    with pytest.raises(ConfigurationError, match="lower \\[pilot\\] size or strata"):
        selected_prompts([prompt("p1")], settings(), "pilot")


def test_files_that_cannot_be_written_do_not_undo_the_run(
    ledger: Ledger, recorder: Recorder, tmp_path: Path
) -> None:
    """What was paid for stays on the ledger, and the next run writes the files."""
    (tmp_path / "runs").touch()
    with pytest.raises(LedgerError, match="cannot write"):
        run(recorder, tmp_path)
    (tmp_path / "runs").unlink()

    again = run(Recorder(ledger, STREAM), tmp_path)

    assert again.generated.n_missing == again.judged.n_open == 0
    assert (again.run.folder / "manifest.json").is_file()
