"""`tourney init` writes files, plans at once, and says how to go on."""

import os
import sys
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from commands.cli.run import demo
from commands.errors import MissingExtra
from commands.settings.inputs import shipped_data
from tests.support.command_line.launching import launch
from tests.support.command_line.terminal import run_at_terminal

SMALL, LARGE = (f"{name}@http://localhost:8000/v1" for name in ("small-3b", "large-32b"))


def test_a_spreadsheet_becomes_a_tournament(tmp_path: Path) -> None:
    """Its prompts, models behind a server, and a judge; what is not used is told."""
    (tmp_path / "mine.csv").write_text("question,votes\nWhy?,3\nWho?,4\n", encoding="utf-8")
    models = ("--entrant", SMALL, "--entrant", LARGE, "--judge", "claude-sonnet-5-5")

    done = launch(tmp_path, "init", "new", "--from-csv", "mine.csv", *models)

    assert done.returncode == 0, done.stderr
    assert "4 responses are missing" in done.stdout
    assert "unused columns of mine.csv: votes" in done.stderr
    assert "the entrants are examples" not in done.stderr
    assert done.stderr.index("  cd new\n") < done.stderr.index("  tourney plan judge ")
    planned = launch(tmp_path / "new", "plan", "judge")
    assert "2 pairs wait for responses; judging them costs $0.0" in planned.stdout, planned.stderr
    assert "one by one" not in planned.stdout  # nothing is open yet


def test_gold_answers_that_no_rubric_shows_are_told(tmp_path: Path) -> None:
    """Whoever wrote some of them expects that the judge sees them."""
    (tmp_path / "mine.csv").write_text("prompt,gold\nWhy?,So\nWho?,\nWhen?,Now\n")

    done = launch(tmp_path, "init", "new", "--from-csv", "mine.csv", "--judge", SMALL)

    assert done.returncode == 0, done.stderr
    assert "Only 2 of 3 prompts have a gold answer, so the rubric does not use them." in done.stderr


def test_models_are_named_with_their_makers(tmp_path: Path) -> None:
    """No address and no variable is looked up; a judge of an entrant's family is told."""
    models = ("--entrant", "openai/gpt-5.6", "--entrant", "google/gemini-3.5-flash")

    done = launch(tmp_path, "init", "new", *models, "--judge", "openai/gpt-5.6-mini")
    planned = launch(tmp_path / "new", "plan", "judge")

    assert (done.returncode, planned.returncode) == (0, 0), done.stderr + planned.stderr
    assert "gemini-3.5-flash (endpoint): 5 requests" in done.stdout
    assert "judge gpt-5.6-mini is of the family GPT, as gpt-5.6: it may prefer" in planned.stderr


@pytest.mark.parametrize("words", [(), (".",)])
def test_the_folder_one_is_in_may_be_filled(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Nobody is told to go where he is; a second time is refused, and changes nothing."""
    done = launch(tmp_path, "init", *words)
    again = launch(tmp_path, "init", *words)

    assert done.returncode == 0, done.stderr
    assert "10 responses are missing" in done.stdout
    assert "the entrants are examples: put your models into tournament.toml" in done.stderr
    assert "  cd " not in done.stderr
    assert again.returncode == 2
    assert again.stderr.startswith("error: .: there is a tournament's tournament.toml, bank")


def test_without_pytorch_no_demo_is_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second try, with it, finds the way as clear as the first."""
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingExtra, match=r"'torch' is not installed; pip install .*\[models\]"):
        demo(tmp_path / "demo", weights=True)

    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("names", "opened"), [((), False), (("DISPLAY",), True), (("DISPLAY", "CI"), False)]
)
def test_the_report_is_opened_at_a_desktop_alone(
    tmp_path: Path, names: tuple[str, ...], opened: bool
) -> None:
    """A browser would take the terminal of who has no desktop, and hold up a CI for ever."""
    with (shipped_data() / "bank.jsonl").open(encoding="utf-8") as prompts:
        (tmp_path / "bank.jsonl").write_text("".join(islice(prompts, 2)), encoding="utf-8")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/address\n', encoding="utf-8")
    browser.chmod(0o755)
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "CI"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    there = {"BROWSER": str(browser), "TOURNEY_PROMPTS_BANK": str(tmp_path / "bank.jsonl")}

    environment = kept | there | dict.fromkeys(names, ":0")

    done = run_at_terminal(tmp_path, ("demo", "look"), environment, answer=None)

    address = tmp_path / "address"
    assert done.code == 0, done.after
    assert "report.html" in done.after
    assert address.exists() == opened
    assert not opened or Path(unquote(urlsplit(address.read_text().strip()).path)).is_file()
