"""A gate answers by its exit code, as continuous integration reads it."""

import json
from pathlib import Path

import pytest

from commands.settings.starting.demo import lay_out_demo
from tests.support.command_line.launching import launch

BEST, WORST = "full_poe", "base_olmo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo of recorded answers, judged."""
    folder = tmp_path_factory.mktemp("gate") / "demo"
    lay_out_demo(folder, weights=False)
    done = launch(folder, "run")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        (("--candidate", BEST, "--baseline", WORST), 0, "not worse"),
        (("--candidate", BEST, "--baseline", WORST, "--better"), 0, "better"),
        (("--candidate", WORST, "--baseline", BEST), 3, "worse"),
        (("--candidate", BEST, "--baseline", "security_only", "--margin", "0"), 0, "not worse"),
        (
            ("--candidate", "security_plus_robustness", "--baseline", BEST, "--margin", "10"),
            6,
            "not enough",
        ),
    ],
)
def test_a_candidate_passes_or_is_stopped(
    demo: Path, words: tuple[str, ...], code: int, verdict: str
) -> None:
    """0, 3 or 6, and a table that says why."""
    done = launch(demo, "gate", *words, "--json")

    (row,) = json.loads(done.stdout)["rows"]
    assert (done.returncode, row["verdict"]) == (code, verdict), done.stderr
    assert row["low"] < row["difference"] < row["high"]
    assert (row["n_more_prompts"] is None) == (code != 6)


def test_nobody_passes_while_pairs_are_open(demo: Path) -> None:
    """A server that died left a part of the prompts, which nobody chose."""
    done = launch(demo, "gate", "--candidate", BEST, "--baseline", WORST, "--as-of", "900")

    assert done.returncode == 6
    assert "pairs of the two are not judged yet: `tourney run` goes on" in done.stderr + done.stdout


def test_a_summary_can_stand_in_a_pull_request(demo: Path) -> None:
    """A table of Markdown; what else is to be known is in the job's log."""
    done = launch(demo, "gate", "--candidate", WORST, "--baseline", BEST, "--format", "md")

    assert done.returncode == 3
    assert "| factuality | worse | base\\_olmo | full\\_poe |" in done.stdout
    assert "Judge: reference" in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--candidate", "poe", "--baseline", WORST), "entrant 'poe' is not known"),
        (("--candidate", WORST, "--baseline", WORST), "are the same entrant; name two"),
    ],
)
def test_who_cannot_be_compared_is_refused(demo: Path, words: tuple[str, ...], why: str) -> None:
    """A misspelt name must not pass."""
    done = launch(demo, "gate", *words)

    assert done.returncode == 2
    assert why in done.stderr
