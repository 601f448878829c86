"""The sessions on the pages are what a newcomer sees."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.docs import checked, own
from tests.docs.pages import DOCS, PAGES, ROOT, Block, blocks, require_as_shown
from tests.support.command_line.launching import launch

N_PROMPTS = 30  # of the demo's bank: enough for intervals
SESSIONS = [block for block in blocks(*PAGES) if block.language == "console"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the demonstration, as `tourney demo` leaves it on less of its bank."""
    place = tmp_path_factory.mktemp("newcomer")
    with (ROOT / "data" / "bank.jsonl").open(encoding="utf-8") as lines:
        (place / "bank.jsonl").write_text("".join(islice(lines, N_PROMPTS)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOURNEY_PROMPTS_BANK", str(place / "bank.jsonl"))
        done = launch(place, "demo", "tourney-demo")
    assert done.returncode == 0, done.stderr
    return place / "tourney-demo"


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[Path]:
    """Give the tutorial's tournament, while its server answers."""
    with own.server() as fake:
        own.lay_out(tmp_path, fake.url)
        yield tmp_path


def test_a_session_is_run_unless_its_page_says_why_not() -> None:
    """A session that nothing runs drifts from the program."""
    marks = {block.mark.partition(":")[0] for block in SESSIONS}

    assert marks == {"demo", "own", "judged", "checked", "not run"}


@pytest.mark.parametrize(
    "session",
    [block for block in SESSIONS if block.mark == "demo"],
    ids=lambda session: session.page.name,
)
def test_a_session_in_the_demo_is_what_happens(session: Block, demo: Path) -> None:
    """An example that has drifted from the program misleads everybody who starts."""
    require_as_shown(session, demo)


def test_the_report_of_the_demo_can_be_mailed(demo: Path) -> None:
    """It holds a sample of the battles, and all else."""
    (report,) = demo.glob("runs/*/report.html")

    assert report.stat().st_size < 150_000


@pytest.mark.parametrize(
    "example",
    [block for block in blocks(*PAGES) if (block.language, block.mark) == ("python", "demo")],
    ids=lambda example: example.page.name,
)
def test_python_in_the_demo_runs(
    example: Block, demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A notebook begins with these lines."""
    monkeypatch.chdir(demo)
    here: dict[str, Any] = {}

    exec(example.text, here)  # noqa: S102  # ours

    assert capsys.readouterr().out.startswith("full_poe ")
    assert len(here["frame"]) == 6


def test_the_tutorial_is_what_happens(tutorial: Path) -> None:
    """Whoever follows it to the letter has a tournament, and sees what it shows."""
    for session in (block for block in SESSIONS if block.mark == "own"):
        require_as_shown(session, tutorial)


def test_a_judge_is_checked_as_the_page_shows(tmp_path: Path) -> None:
    """Whether to trust the judge is asked first, so its page must not have drifted."""
    checked.lay_out(tmp_path)
    for session in (block for block in SESSIONS if block.mark == "checked"):
        require_as_shown(session, tmp_path)


def test_the_notebook_runs_in_the_demo(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells share one namespace, as under a kernel."""
    cells = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    monkeypatch.chdir(demo)
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102  # a page of this project

    assert len(names["frame"]) == 6
    assert names["by_k"].keys() == {4, 16, 32}
    assert {row.entrant for row in names["ratings"]} == {*names["by_k"][4]}
    assert names["by_status"].total() == 6 * N_PROMPTS
