"""`tourney init` writes files, plans at once, and says how to go on."""

import os
import re
from pathlib import Path

import pytest

from tests.providers.openai import FakeOpenAI, Said
from tests.support.command_line.launching import launch
from tests.support.command_line.terminal import run_at_terminal

SMALL, LARGE = (f"{name}@http://localhost:8000/v1" for name in ("small-3b", "large-32b"))


def test_a_spreadsheet_becomes_a_tournament(tmp_path: Path) -> None:
    """Its prompts, models behind a server, and a judge; what is not used is told."""
    (tmp_path / "mine.csv").write_text("question,votes\nWhy?,3\nWho?,4\n", encoding="utf-8")
    models = ("--entrant", SMALL, "--entrant", LARGE, "--judge", "claude-sonnet-5-5")

    done = launch(tmp_path, "init", "new", "--from", "mine.csv", *models)

    assert done.returncode == 0, done.stderr
    assert "4 responses are missing" in done.stdout
    assert "mine.csv: 2 prompts, no answers; unused columns: votes\n" in done.stderr
    assert "the entrants are examples" not in done.stderr
    assert done.stderr.index("  cd new\n") < done.stderr.index("  tourney plan judge ")
    planned = launch(tmp_path / "new", "plan", "judge")
    assert "2 pairs wait for responses; judging them costs $0.0" in planned.stdout, planned.stderr
    assert "one by one" not in planned.stdout  # nothing is open yet


def test_columns_that_may_be_answers_are_told(tmp_path: Path) -> None:
    """Two models answer the prompts, so nothing of the table competes."""
    (tmp_path / "mine.csv").write_text("prompt,old,new\nWhy?,So.,No.\n", encoding="utf-8")
    models = ("--entrant", SMALL, "--entrant", LARGE, "--judge", "claude-sonnet-5-5")

    done = launch(tmp_path, "init", "new", "--from", "mine.csv", *models)

    assert "mine.csv: 1 prompt, no answers; unused columns: old, new\n" in done.stderr
    assert "to compare the answers in these columns, leave out --entrant\n" in done.stderr


def test_gold_answers_that_no_rubric_shows_are_told(tmp_path: Path) -> None:
    """Whoever wrote some of them expects that the judge sees them."""
    (tmp_path / "mine.csv").write_text("prompt,gold\nWhy?,So\nWho?,\nWhen?,Now\n")

    done = launch(tmp_path, "init", "new", "--from", "mine.csv", "--judge", SMALL)

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


def test_it_asks_what_to_compare_at_a_terminal(tmp_path: Path) -> None:
    """Who types the word alone has read no page; an empty answer ends the models."""
    typed = b"\nopenai/gpt-5.6\ngoogle/gemini-3.5-flash\n\nopenai/gpt-5.6-mini\n"

    done = run_at_terminal(
        tmp_path, ("init", "new"), os.environ, answer=typed, asked="Parquet): ", thinks=True
    )

    assert done.code == 0, done.after
    text = (tmp_path / "new" / "tournament.toml").read_text("utf-8")
    assert text.count('model = "openai/gpt-5.6"') == 1
    assert text.count('model = "google/gemini-3.5-flash"') == 1
    assert text.count('model = "openai/gpt-5.6-mini"') == 1


def test_at_a_terminal_answers_that_are_there_need_no_models(tmp_path: Path) -> None:
    """Only the judge is asked for; a file that is not there is told before anything else."""
    (tmp_path / "mine.csv").write_text("prompt,old,new\nWhy?,So.,No.\n", encoding="utf-8")

    done, missing = (
        run_at_terminal(
            tmp_path, ("init", name), os.environ, answer=typed, asked="Parquet): ", thinks=True
        )
        for name, typed in (("new", b"mine.csv\nopenai/gpt-5.6\n"), ("none", b"none.csv\n"))
    )

    assert done.code == 0, done.after
    assert (tmp_path / "new" / "tournament.toml").read_text("utf-8").count("[[entrants]]") == 2
    assert missing.code == 2
    assert "none.csv: there is no such file or folder" in missing.after


def test_an_example_stands_for_itself(tmp_path: Path) -> None:
    """Its own answers are judged offline, at once; no option changes it."""
    refused = launch(tmp_path, "init", "new", "--example", "rag", "--judge", SMALL)
    done = launch(tmp_path, "init", "new", "--example", "rag")
    ran = launch(tmp_path / "new", "run")

    assert refused.returncode == 2
    assert "--example rag has its own prompts, entrants and judge" in refused.stderr
    assert (done.returncode, ran.returncode) == (0, 0), done.stderr + ran.stderr
    assert "12 pairs = 12 decided" in ran.stdout
    assert list((tmp_path / "new").glob("runs/*/report.html"))


@pytest.mark.parametrize("example", ["models", pytest.param("prompts", marks=pytest.mark.nightly)])
def test_an_example_runs_to_a_report(tmp_path: Path, example: str) -> None:
    """With models that are served; nothing but their addresses is changed."""
    with FakeOpenAI(lambda asked: Said(f"{len(str(asked))} characters.\nVERDICT: A")) as fake:
        fake.traffic.models = frozenset({"gpt-5.6-luna", "gemini-3.5-flash", "claude-opus-5-5"})
        launch(tmp_path, "init", example, "--example", example)
        settings = tmp_path / example / "tournament.toml"
        text = re.sub(
            r'model = "\w+/(.*)"', rf'model = "\1"\nbase_url = "{fake.url}"', settings.read_text()
        )
        settings.write_text(text.replace("[judge]", '[judge]\nprovider = "endpoint"'))
        done = launch(tmp_path / example, "run", "--yes")

    assert done.returncode == 0, done.stderr
    assert "24 responses generated" in done.stderr
    assert list((tmp_path / example).glob("runs/*/report.html"))


def test_the_folder_one_is_in_may_be_filled(tmp_path: Path) -> None:
    """Nobody is told to go where he is; a second time is refused, and changes nothing."""
    done = launch(tmp_path, "init")
    again = launch(tmp_path, "init", ".")

    assert done.returncode == 0, done.stderr
    assert "10 responses are missing" in done.stdout
    assert "the entrants are examples: put your models into tournament.toml" in done.stderr
    assert "  cd " not in done.stderr
    assert again.returncode == 2
    assert again.stderr.startswith("error: .: there is a tournament's tournament.toml, bank")


def test_rows_that_are_no_labelled_pairs_are_counted(tmp_path: Path) -> None:
    """Whoever checks a judge by few pairs learns where the others went."""
    head = "prompt,response_A,response_B,label\n"
    rows = "Q,x,y,A>B\nR,x,y,\nQ,x,other,A>B\n"
    (tmp_path / "pairs.csv").write_text(head + rows, encoding="utf-8")

    done = launch(tmp_path, "init", "new", "--from", "pairs.csv", "--judge", "claude-sonnet-5-5")

    assert "left out: 1 row without a prompt, two answers or a label that is" in done.stderr
    assert "left out: 1 row with an earlier prompt and other answers" in done.stderr
