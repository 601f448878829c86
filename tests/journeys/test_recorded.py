"""Answers that one already has, from a table to a report, corrected and incomplete."""

import csv
import json
from pathlib import Path

import pytest

from tests.providers.openai import MODEL, FakeOpenAI, Said
from tests.support.command_line.launching import Completed, launch

SYSTEMS = ("model-a", "model-b", "model-c")
N_PROMPTS = 40
Rows = list[dict[str, str]]


def rows_of_three_systems() -> Rows:
    """Return 40 prompts, each with a gold answer and one of each system, all unlike."""
    return [
        {
            "prompt": f"What is {n} plus 1?",
            "gold_answer": str(n + 1),
            "model-a": f"It is {n + 1}.",
            "model-b": f"{n} or so",
            "model-c": f"I cannot add to {n}",
        }
        for n in range(N_PROMPTS)
    ]


def write(path: Path, rows: Rows) -> None:
    """Write a CSV file, as a spreadsheet does."""
    with path.open("w", newline="", encoding="utf-8") as opened:
        table = csv.DictWriter(opened, [*rows[0]])
        table.writeheader()
        table.writerows(rows)


def done(folder: Path, *words: str, code: int = 0) -> Completed:
    """Run a command that ends so."""
    ended = launch(folder, *words)
    assert ended.returncode == code, ended.stderr
    return ended


def n_open(folder: Path) -> int:
    """Return how many queries a judge is still owed."""
    planned = json.loads(done(folder, "plan", "judge", "--json").stdout)
    return int(planned["n_owed"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Give a table of three systems."""
    write(tmp_path / "table.csv", rows_of_three_systems())
    return tmp_path / "table.csv"


def test_a_table_becomes_a_report_in_three_commands(table: Path) -> None:
    """A server judges; its columns are told; nothing is generated or paid twice."""
    with FakeOpenAI(lambda _: Said("VERDICT: A")) as server:
        judge = f"{MODEL}@{server.url}"
        begun = done(table.parent, "init", "mine", "--from-answers", "table.csv", "--judge", judge)
        mine = table.parent / "mine"
        done(mine, "run", "--yes")
        done(mine, "report")
        n_asked = len(server.traffic.asked)
        done(mine, "run", "--yes")

        assert "3 entrants: model-a, model-b, model-c" in begun.stderr
        assert "missing" not in begun.stdout
        assert n_asked == len(server.traffic.asked) == N_PROMPTS * 3 * 2
    assert (mine / "report.html").exists()
    done(mine, "verify")
    done(mine, "replay")


def test_a_corrected_answer_owes_its_own_pairs_only(table: Path) -> None:
    """The others are recorded again, and their verdicts hold; the order of rows is no matter."""
    done(table.parent, "init", "mine", "--from-answers", "table.csv")
    mine, rows = table.parent / "mine", rows_of_three_systems()
    done(mine, "run")
    write(table, [*reversed(rows)])
    assert json.loads(done(mine, "plan", "generate", "--json").stdout)["n_owed"] == 0

    write(table, [{**rows[0], "model-a": "one"}, *rows[1:]])

    assert n_open(mine) == 2 * 2  # with two others, in both orders
    done(mine, "run")
    assert n_open(mine) == 0
    done(mine, "verify")
    done(mine, "replay")


def test_missing_answers_are_named_and_are_gaps(table: Path) -> None:
    """An empty answer is none of them: it is judged."""
    done(table.parent, "init", "mine", "--from-answers", "table.csv")
    mine, rows = table.parent / "mine", rows_of_three_systems()
    answers = [{"prompt": each["prompt"], "response": each["model-b"]} for each in rows[1:]]
    (mine / "b.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in answers))
    write(table, [{**rows[0], "model-a": ""}, *rows[1:]])
    settings = (mine / "tournament.toml").read_text(encoding="utf-8")
    old = 'responses = "../table.csv"\ncolumn = "model-b"'
    assert old in settings
    (mine / "tournament.toml").write_text(settings.replace(old, 'responses = "b.jsonl"'))

    planned = done(mine, "plan", "generate")
    generated = done(mine, "apply", "generate", code=6)
    done(mine, "run", code=6)

    assert "'model-b': b.jsonl has no answer to 1 prompt: p_" in planned.stderr
    assert "'model-b': b.jsonl has no answer to 1 prompt: p_" in generated.stderr
    assert json.loads(done(mine, "project", "winrates", "--json").stdout)["rows"][0]["missing"] == 1
    done(mine, "verify")
