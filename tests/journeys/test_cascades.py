"""A cheap judge on all prompts, a strong one on a share: what is owed, rated and told."""

from pathlib import Path

import pytest

from tests.support.command_line.launching import launch, lay_out_recorded
from tests.support.command_line.settled import said

N_PROMPTS = 30
JURY = """
[[jury]]
id = "strict"
provider = "reference"
model = "chrF2"
instructions = "strict.md"
"""
STRICT = "<!-- version: 1 -->\nJudge strictly.\n"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo of recorded answers after a run; its juror was not asked yet."""
    folder = lay_out_recorded(tmp_path_factory.mktemp("cascades") / "demo", N_PROMPTS)
    settings = folder / "tournament.toml"
    settings.write_text(settings.read_text(encoding="utf-8") + JURY, encoding="utf-8")
    (folder / "strict.md").write_text(STRICT, encoding="utf-8")
    launch(folder, "run")
    return folder


def at_share(folder: Path, share: float) -> None:
    """Write a share into the settings of the juror."""
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("\nshare = ")[0].rstrip()
    settings.write_text(f"{text}\nshare = {share}\n", encoding="utf-8")


def n_owed(folder: Path) -> int:
    """Return how many queries to the juror are open."""
    return int(said(folder, "plan", "judge", "--judge", "strict")["n_owed"])


def test_a_share_is_judged_grown_and_corrects_the_cheap_judge(judged: Path) -> None:
    """A larger share owes the difference; ratings by both are for the strong judge."""
    at_share(judged, 1.0)
    everything = n_owed(judged)
    at_share(judged, 0.3)
    small = n_owed(judged)
    planned = launch(judged, "plan", "judge", "--judge", "strict").stdout
    applied = launch(judged, "apply", "judge", "--judge", "strict")
    at_share(judged, 0.6)
    more = n_owed(judged)
    launch(judged, "apply", "judge", "--judge", "strict")
    found = said(judged, "project", "bt", "--truth", "strict")
    shown = " ".join(launch(judged, "project", "bt", "--truth", "strict").stdout.split())
    progress = launch(judged, "status", "--judge", "strict").stdout
    summary = launch(judged, "report", "--format", "md").stdout

    assert 0 < small < everything
    assert "share = 0.3: strict is asked on" in planned
    assert f"{small} queries were open: {small} answered with a verdict" in applied.stderr
    assert 0 < more < everything - small
    assert n_owed(judged) == 0
    correction = found["correction"]["factuality"]
    assert (found["judge"], found["truth"]) == ("reference", "strict")
    assert correction["doubts"] == []
    assert 0 < correction["n_prompts"] < N_PROMPTS
    assert all(row["low"] < row["rating"] < row["high"] for row in found["rows"])
    assert "factuality: strict is the truth: its outcomes of" in shown
    assert "factuality, by strict:" in shown
    assert "share = 0.6: strict is asked on" in shown
    assert "WARNING: factuality: the" not in shown
    assert " + 0 pending" in progress
    assert "rates by reference alone: `tourney project bt --truth strict` rates by both" in (
        summary.replace("\\", "")
    )
    assert "the others are not planned for it" in " ".join(progress.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--truth reference", "--truth 'reference' corrects one other judge: name it by --judge"),
        ("--truth strict --judge strict", "known: reference"),
        ("--truth strict --policy majority", "--truth 'strict' corrects one other judge"),
        ("--truth strikt", "no battles were imported as 'strikt'"),
    ],
)
def test_what_a_judge_cannot_correct_is_refused(judged: Path, words: str, why: str) -> None:
    """Itself, a jury that it is one of, and nobody."""
    done = launch(judged, "project", "bt", *words.split())

    assert done.returncode in {1, 2}
    assert why in " ".join(done.stderr.split())


def test_prompts_in_order_are_told_to_be_no_random_sample(judged: Path) -> None:
    """As after a limit: what the judge does on the first ones says little of the others."""
    settings = judged / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("\nshare = ")[0]
    text = text.replace('"strict"', '"limited"').replace("strict.md", "limited.md")
    settings.write_text(text, encoding="utf-8")
    (judged / "limited.md").write_text(STRICT.replace("strictly", "as you like"), encoding="utf-8")
    launch(judged, "apply", "judge", "--judge", "limited", "--limit", "40")

    shown = " ".join(launch(judged, "project", "bt", "--truth", "limited").stdout.split())

    assert "are no random sample of those judged, by their prompts" in shown
    assert "give [[jury]] 'limited' a `share`, which draws at random" in shown
