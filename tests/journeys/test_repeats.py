"""A sample of the queries is asked again: what it costs, and how many verdicts change."""

from pathlib import Path

import pytest

from tests.support.command_line.launching import launch, lay_out_recorded
from tests.support.command_line.settled import said


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo of recorded answers after a run on a few prompts."""
    folder = lay_out_recorded(tmp_path_factory.mktemp("repeats") / "demo", 12)
    launch(folder, "run")
    return folder


def test_a_sample_is_asked_again_and_compared(judged: Path) -> None:
    """Twice the same number asks nothing more; ratings and published files stay as they are."""
    before = said(judged, "project", "bt")["rows"]
    planned = said(judged, "plan", "judge", "--repeat", "12")
    is_owed = launch(judged, "plan", "judge", "--repeat", "12", "--exit-code")
    asked = [launch(judged, "apply", "judge", "--repeat", str(n)).stderr for n in (12, 12, 20)]
    after = launch(judged, "plan", "judge", "--repeat", "20", "--exit-code")
    rows = said(judged, "project", "bias")["rows"]
    told = said(judged, "sql", "SELECT count(repeats) AS n, count(*) AS whole FROM verdicts")
    [run] = (judged / "runs").iterdir()

    assert planned["n_owed"] == 12
    assert "drawn by the seed" in is_owed.stdout
    assert (is_owed.returncode, after.returncode) == (9, 0)
    for words, n_open, n in zip(asked, (12, 0, 8), (12, 12, 20), strict=True):
        assert f"{n_open} repeats were open of {n}: {n_open} answered with a verdict" in words
    retests = {row["of"]: row for row in rows if row["measure"] == "retest flips"}
    assert (retests["all repeats"]["value"], retests["all repeats"]["n"]) == (0, 20)
    assert {*retests} == {"all repeats", "opposite winners", "a tie beside a win"}
    assert told["rows"][0]["n"] == 20
    assert said(judged, "project", "bt")["rows"] == before
    assert launch(judged, "verify").returncode == 0
    assert launch(judged, "replay", "--against", f"runs/{run.name}").returncode == 0


def test_no_more_is_asked_again_than_there_is(judged: Path) -> None:
    """All that have a verdict, that is."""
    n = said(judged, "sql", "SELECT count(*) AS n FROM verdicts WHERE repeats IS NULL")["rows"]

    planned = said(judged, "plan", "judge", "--repeat", "100000")

    assert 20 < planned["n_owed"] <= n[0]["n"]


def test_what_repeats_do_not_go_with_is_refused(judged: Path) -> None:
    """Another table, or none of them."""
    other = launch(judged, "plan", "judge", "--repeat", "5", "--target", "25")

    assert launch(judged, "apply", "judge", "--repeat", "0").returncode == 2
    assert other.returncode == 2
    assert "--repeat works with none of --show-prompt, --target, --separate" in other.stderr
