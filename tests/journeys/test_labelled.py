"""Pairs of answers that people have labelled tell how good a judge is, in four commands."""

import csv
import json
from pathlib import Path

from tests.providers.openai import MODEL, FakeOpenAI, Json, Said
from tests.support.command_line.launching import launch


def better_of(body: Json) -> Said:
    """Judge as one who likes a right sum, in whatever slot it stands."""
    a, _, b = str(body["messages"]).partition("<<< response A ")[2].partition("<<< response B ")
    return Said(f"VERDICT: {'A' if 'right' in a else 'B' if 'right' in b else 'TIE'}")


def test_a_labelled_table_says_how_good_a_judge_is(tmp_path: Path) -> None:
    """A judge that is right whenever people are, but for five pairs, has their accuracy."""
    with (tmp_path / "labelled.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["question", "response_A", "response_B", "label"])
        for n in range(40):
            right, wrong = f"right: {n + 1}", f"wrong: {n}"
            is_first = n % 2 == 0
            answers = (right, wrong) if is_first else (wrong, right)
            is_a = is_first if n >= 5 else not is_first
            table.writerow([f"{n} + 1?", *answers, "A>B" if is_a else "B>A"])

    with FakeOpenAI(better_of) as server:
        words = (
            "init",
            "mine",
            "--from",
            "labelled.csv",
            "--judge",
            f"{MODEL}@{server.url}",
        )
        begun = launch(tmp_path, *words)
        mine = tmp_path / "mine"
        ran = launch(mine, "run", "--yes")
    imported = launch(mine, "import", "battles", "votes.csv", "--name", "people")
    told = launch(mine, "project", "agreement", "--truth", "people", "--json")

    assert "40 pairs of answers with 40 votes: " in begun.stderr, begun.stderr
    assert "tourney project agreement --truth people" in begun.stderr
    assert [each.returncode for each in (ran, imported, told)] == [0, 0, 0], ran.stderr
    (accuracy,) = [
        row["value"]
        for row in json.loads(told.stdout)["rows"]
        if row["measure"] == "agreement" and "gold" in row["judges"]
    ]
    assert accuracy == 35 / 40


def test_a_table_whose_labels_nobody_understands_is_refused(tmp_path: Path) -> None:
    """Nothing would be left to compare a judge with."""
    (tmp_path / "x.csv").write_text("prompt,response_a,response_b,winner\nQ,x,y,blue\n")

    done = launch(tmp_path, "init", "mine", "--from", "x.csv", "--judge", "claude-sonnet-5-5")

    assert done.returncode == 2
    assert "x.csv: no labelled pair is in it; a row needs a prompt" in done.stderr
