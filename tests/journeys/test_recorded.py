"""Answers that one already has, from a table to a report, corrected and incomplete."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import tourney
from tests.providers.openai import MODEL, FakeOpenAI, Json, Said
from tests.support.command_line.launching import change, done

N_PROMPTS = 16
Rows = list[dict[str, str]]


def rows_of_three_systems() -> Rows:
    """Return prompts, each with a gold answer and one of each system, all unlike."""
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


def n_open(folder: Path) -> int:
    """Return how many queries a judge is still owed."""
    planned = json.loads(done(folder, "plan", "judge", "--json").stdout)
    return int(planned["n_owed"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Give a table of three systems."""
    write(tmp_path / "table.csv", rows_of_three_systems())
    return tmp_path / "table.csv"


def preferring_sums(body: Json) -> Said:
    """Prefer the response that names a sum, and now and then the other."""
    asked = str(body["messages"])
    first = asked.partition("<<< response A ")[2].partition(">>> end of response A ")[0]
    is_right = "It is" in first or ("or so" in first and "cannot" in asked)
    is_mistaken = "plus 1" in asked and " 7 plus" in asked
    return Said(f"VERDICT: {'A' if is_right != is_mistaken else 'B'}")


def test_a_table_becomes_a_report_in_three_commands(table: Path) -> None:
    """A server judges; its columns are told, one of each system's dollars among them.

    Nothing is generated, spent on answers, or paid twice.
    """
    prices = {"model-a": 0.02, "model-b": 0.004, "model-c": 0.001}
    priced = {f"{name}_dollars": str(usd) for name, usd in prices.items()}
    write(table, [{**row, **priced} for row in rows_of_three_systems()])
    with FakeOpenAI(preferring_sums) as server:
        judge = f"{MODEL}@{server.url}"
        begun = done(table.parent, "init", "mine", "--from", "table.csv", "--judge", judge)
        mine = table.parent / "mine"
        done(mine, "run", "--yes")
        done(mine, "report")
        n_asked = len(server.traffic.asked)
        done(mine, "run", "--yes")
        assert n_asked == len(server.traffic.asked) == N_PROMPTS * 3 * 2
    costs = done(mine, "sql", "SELECT entrant, sum(usd) AS usd FROM responses GROUP BY 1", "--json")

    assert "3 entrants: model-a, model-b, model-c" in begun.stderr
    assert "missing" not in begun.stdout
    page = (mine / "report.html").read_text(encoding="utf-8")
    assert "US dollars a response" in page
    assert all(f"${usd:.2g}" in page for usd in prices.values())
    assert json.loads(costs.stdout)["rows"] == [
        {"entrant": name, "usd": pytest.approx(N_PROMPTS * usd)} for name, usd in prices.items()
    ]
    done(mine, "verify")
    done(mine, "replay")


def test_spaces_around_a_prompt_make_no_other_prompt_and_an_empty_answer_is_told(
    table: Path,
) -> None:
    """A table has both now and then; the one loses as any other answer may, and it is said why."""
    rows = rows_of_three_systems()
    rows[0]["model-b"] = ""
    for n, spaced in enumerate([" {}", "{} ", "{}\n"]):
        rows[n]["prompt"] = spaced.format(rows[n]["prompt"])
    write(table, rows)
    begun = done(table.parent, "init", "mine", "--from", "table.csv")
    done(table.parent / "mine", "run", "--yes")  # which ends otherwise where a pair has no outcome

    done(table.parent / "mine", "report", "-o", "summary.md")

    said = (table.parent / "mine" / "summary.md").read_text()
    assert "1 empty cell counts as an answer without a text, which is judged" in begun.stderr
    assert "Empty, and judged as an answer of no words: 1 response of model-b." in said


def test_a_file_of_answers_that_is_not_there_is_told_once(table: Path) -> None:
    """Though all entrants have their answers in it."""
    done(table.parent, "init", "mine", "--from", "table.csv")
    table.unlink()

    told = done(table.parent / "mine", "plan", "judge", code=2).stderr

    assert told.count("there is no such file of answers; correct `responses`") == 1


@pytest.fixture(scope="module")
def by_category(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a tournament, judged offline, whose prompts are of three categories."""
    folder = tmp_path_factory.mktemp("categories")
    topics = ["math", "logic", "code", "math"]
    rows = enumerate(rows_of_three_systems())
    write(folder / "table.csv", [{**row, "category": topics[n % 4]} for n, row in rows])
    done(folder, "init", "mine", "--from", "table.csv")
    done(folder / "mine", "run", "--yes")
    return folder / "mine"


@pytest.fixture(scope="module")
def without_math(by_category: Path) -> Path:
    """Give the folder of a tournament on the other prompts alone."""
    others = by_category.parent / "others"
    shutil.copytree(by_category, others, ignore=shutil.ignore_patterns("tournament.db*", "runs"))
    bank = [json.loads(line) for line in (others / "bank.jsonl").read_text().splitlines()]
    kept = [json.dumps(prompt) for prompt in bank if prompt["category"] != "math"]
    (others / "bank.jsonl").write_text("\n".join(kept))
    done(others, "run", "--yes")
    return others


@pytest.mark.parametrize(
    "command",
    ["elo", "bt", "bt --pairs", "winrates", "matches", "agreement", "fragility"],
)
def test_results_are_read_on_the_prompts_of_some_categories(
    by_category: Path, without_math: Path, command: str
) -> None:
    """With a line that says so, and the same numbers as a bank of those prompts would have."""
    words = ("project", *command.split())
    where = ("--where", "category=code", "--where", "category=logic")

    selected = json.loads(done(by_category, *words, *where, "--json").stdout)
    alone = json.loads(done(without_math, *words, "--json").stdout)

    assert selected["rows"] == alone["rows"] != []
    assert selected["where"] == {"category": ["code", "logic"]}
    assert "Only prompts of category=code or logic." in done(by_category, *words, *where).stdout


def test_python_reads_the_prompts_of_a_category_too(by_category: Path) -> None:
    """By the same columns."""
    view = tourney.read(by_category / "tournament.db", where={"category": "code"})

    assert {row.n_battles for row in view.bradley_terry()} == {2 * N_PROMPTS // 4}
    assert len(view.responses()) == 3 * N_PROMPTS // 4
    with pytest.raises(tourney.TourneyError, match="bias is measured on all prompts"):
        view.bias()


def test_votes_on_other_prompts_are_left_out(by_category: Path) -> None:
    """People agree with the judge where they saw a category, and nowhere else."""
    listed = json.loads(done(by_category, "project", "matches", "--json").stdout)["rows"]
    bank = [json.loads(line) for line in (by_category / "bank.jsonl").read_text().splitlines()]
    code = {prompt["prompt_id"] for prompt in bank if prompt["category"] == "code"}
    votes = [
        {
            "model_a": row["entrant_a"],
            "model_b": row["entrant_b"],
            "winner": f"model_{'ab'[(row['status'] == 'b') == (row['prompt'] in code)]}",
            "question_id": row["prompt"],
            "source": "human",
            "judge_model": "ann",
        }
        for row in listed
        if row["status"] in {"a", "b"}
    ]
    write(by_category / "votes.csv", votes)
    done(by_category, "import", "battles", "votes.csv", "--name", "people")
    told = ("project", "agreement", "--truth", "people", "--json", "--where")

    shares = {
        category: next(
            row["value"]
            for row in json.loads(done(by_category, *told, f"category={category}").stdout)["rows"]
            if row["measure"] == "agreement"
        )
        for category in ("code", "logic")
    }

    assert shares == {"code": 1.0, "logic": 0.0}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "--where topic=math",
            "'mine' has no column 'topic'; it has category: code, logic, math; source: own;",
        ),
        ("--where category=maths", "'mine' has no such prompt; did you mean 'math'?"),
        ("--where category=math --where source=own --with x", "leave out --with"),
    ],
)
def test_prompts_that_there_are_not_are_refused(by_category: Path, words: str, why: str) -> None:
    """With the columns and values that there are."""
    assert why in done(by_category, "project", "bt", *words.split(), code=2).stderr


def alpaca_outputs(folder: Path, model: str, n_prompts: int = 3) -> None:
    """Write answers where AlpacaEval keeps them, with what else it keeps there."""
    (folder / model).mkdir(parents=True)
    asked = [f"Explain {n}." for n in range(n_prompts)]
    rows = [
        {"instruction": each, "output": f"{each} {model}", "generator": model} for each in asked
    ]
    (folder / model / "model_outputs.json").write_text(json.dumps(rows))
    judged = [
        {"instruction": each, "output_1": "", "output_2": "", "preference": 1} for each in asked
    ]
    (folder / model / "annotations.json").write_text(json.dumps(judged))


@pytest.mark.parametrize("row", [{"prompt": "half \ud800", "a": "1", "b": "2"}, {"prompt": ["x"]}])
def test_a_prompt_that_is_no_text_is_refused_in_a_line(
    row: dict[str, object], tmp_path: Path
) -> None:
    """And no file is left behind."""
    (tmp_path / "t.json").write_text(json.dumps([{"a": "1", "b": "2", **row}]))

    words = ("init", "m", "--from", "t.json", "--judge", "claude-sonnet-5-5")
    refused = done(tmp_path, *words, code=2).stderr

    assert refused.count("\n") <= 4
    assert "which is not UTF-8; " in refused or "'text' is a list, not a text" in refused
    assert not (tmp_path / "m" / "tournament.toml").exists()


def test_columns_may_begin_with_a_capital_letter(tmp_path: Path) -> None:
    """As spreadsheets write them; what `init` understands, every command does."""
    (tmp_path / "t.csv").write_text(
        " Question ,Gold,old,new\nWhy?,So.,So.,No.\nWho?,Me.,You.,Me.\n"
    )

    begun = done(tmp_path, "init", "m", "--from", "t.csv")
    done(tmp_path / "m", "run")

    assert "2 entrants: old, new" in begun.stderr


def test_a_folder_without_two_systems_is_refused(tmp_path: Path) -> None:
    """What was read, and what is missing, is told; nothing is written."""
    alpaca_outputs(tmp_path / "one", "model-a")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "notes.json").write_text('[{"a": 1}]')
    (tmp_path / "ids").mkdir()
    turns = {"question_id": 81, "model_id": "m", "choices": [{"turns": ["Hi"]}]}
    (tmp_path / "ids" / "m.jsonl").write_text(json.dumps(turns))
    refused = {
        name: done(tmp_path, "init", "m", "--from", name, code=2).stderr
        for name in ("one", "none", "ids")
    }

    assert "one: it has answers of model-a only; name a folder with the files" in refused["one"]
    assert "none: no file in it holds answers" in refused["none"]
    assert "none/notes.json:1: no column holds the answer" in refused["none"]
    assert "ids: its rows name prompts by id only" in refused["ids"]
    assert not (tmp_path / "m").exists()


def test_a_corrected_answer_owes_its_own_pairs_only(table: Path) -> None:
    """The others are recorded again, and their verdicts hold; the order of rows is no matter."""
    done(table.parent, "init", "mine", "--from", "table.csv")
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


def test_a_redacted_answer_keeps_its_outcomes_where_others_said_the_same(table: Path) -> None:
    """Pairs of the same texts share their queries, which name one of them; the run stays whole."""
    alike = [{**row, "model-c": row["model-b"]} for row in rows_of_three_systems()]
    write(table, alike)
    done(table.parent, "init", "mine", "--from", "table.csv")
    mine = table.parent / "mine"
    done(mine, "run")
    before = done(mine, "project", "winrates", "--json").stdout
    sql = "select min(position) as at from event where type = 'ResponseGenerated'"
    (first,) = json.loads(done(mine, "sql", sql, "--json").stdout)["rows"]

    done(mine, "redact", str(first["at"]), "--why", "a name", "--yes")

    assert "0 faults" in done(mine, "verify").stdout
    done(mine, "run")
    after = json.loads(done(mine, "project", "winrates", "--json").stdout)
    assert after["rows"] == json.loads(before)["rows"]


def test_missing_answers_are_named_and_are_gaps(table: Path) -> None:
    """An empty answer is none of them: it is judged."""
    done(table.parent, "init", "mine", "--from", "table.csv")
    mine, rows = table.parent / "mine", rows_of_three_systems()
    answers = [{"prompt": each["prompt"], "response": each["model-b"]} for each in rows[1:]]
    (mine / "b.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in answers))
    write(table, [{**rows[0], "model-a": ""}, *rows[1:]])
    old = 'responses = "../table.csv"\ncolumn = "model-b"'
    change(mine / "tournament.toml", old, 'responses = "b.jsonl"')

    planned = done(mine, "plan", "generate")
    generated = done(mine, "apply", "generate", code=6)
    done(mine, "run", code=6)

    assert "'model-b': b.jsonl has no answer to 1 prompt: p_" in planned.stderr
    assert "'model-b': b.jsonl has no answer to 1 prompt: p_" in generated.stderr
    assert json.loads(done(mine, "project", "winrates", "--json").stdout)["rows"][0]["missing"] == 1
    done(mine, "verify")
